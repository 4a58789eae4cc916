//! The rights that operations ask for: whether a caller may change something, is an operator, or has a key without limits.

use super::Error;
use access::{Caller, KeyLimits, Role};

/// Refuses a caller with a key that may only read.
///
/// # Errors
/// Where the caller may not.
pub fn require_writer(caller: &Caller) -> Result<(), Error> {
    if caller.limits.read_only {
        return Err(Error::Forbidden("more rights: this one is for reading only"));
    }
    Ok(())
}

/// Lets in operators alone.
///
/// # Errors
/// Where the caller may not.
pub fn require_operator(caller: &Caller) -> Result<(), Error> {
    match caller.role {
        Role::Operator => Ok(()),
        Role::Consumer | Role::Monitor => Err(Error::Forbidden("the role of operators")),
    }
}

/// Lets in operators whose key may spend any amount: penalties and compensation would be paid past a cap.
///
/// # Errors
/// Where the caller may not.
pub fn require_evictor(caller: &Caller) -> Result<(), Error> {
    require_operator(caller)?;
    if caller.limits.spending_cap.is_some() {
        return Err(Error::Forbidden("the role of operators, without a spending cap"));
    }
    Ok(())
}

/// Lets in operators whose key has no limits and does not expire: a key that they make, or that lasts longer by them, has none of
/// theirs.
///
/// # Errors
/// Where the caller may not.
pub fn require_key_maker(caller: &Caller) -> Result<(), Error> {
    require_key_keeper(caller)?;
    if caller.expires.is_some() {
        return Err(Error::Forbidden(
            "the role of operators, with a key that does not expire",
        ));
    }
    Ok(())
}

/// Lets in operators whose key has no limits.
///
/// # Errors
/// Where the caller may not.
pub fn require_key_keeper(caller: &Caller) -> Result<(), Error> {
    require_operator(caller)?;
    if caller.limits != KeyLimits::default() {
        return Err(Error::Forbidden("the role of operators, and without limits"));
    }
    Ok(())
}
