//! Carries out what is owed: claim, step, effect, record.
