//! The states of agreements, their words and the moves between them.

use wsag::agreement_state::AgreementState;

#[test]
fn final_states_allow_nothing_and_every_other_state_leads_to_one() {
    for state in AgreementState::ALL {
        let nexts: Vec<_> = AgreementState::ALL
            .into_iter()
            .filter(|next| state.allows(*next))
            .collect();
        assert_eq!(state.is_final(), nexts.is_empty(), "{state}");
    }
}

#[test]
fn words_name_their_states() {
    for state in AgreementState::ALL {
        assert_eq!(AgreementState::from_word(state.word()), Some(state));
    }
    assert_eq!(AgreementState::from_word("observed"), None);
}

#[test]
fn termination_goes_through_the_terminating_states_only() {
    for state in AgreementState::ALL {
        if let Some(next) = state.terminating() {
            assert!(state.allows(next), "{state} → {next}");
            assert!(next.allows(AgreementState::Terminated));
        } else {
            assert!(state.is_final() || state.allows(AgreementState::Terminated));
        }
    }
}
