//! The composition root: builds the stages in order, owns every long task, stops in reverse.
