//! Pages of an inbox over a store that is made up.
