//! Plugins that do harm, each in its own way, inside the program itself. After each, the attempt came to what it must, with
//! the reason; another plugin's delivery of the same event was made at once; the program's memory and the threads of its
//! sandbox are back where they were; and in the end nobody knocked where nobody may.

mod greed;
mod loading;
mod mind;
mod nonsense;
mod reach;
mod stage;
