//! The web inbox in Chromium, on the program itself.

mod access;
mod hostile;
mod live;
mod stage;
mod work;
