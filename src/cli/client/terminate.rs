//! `bespeak terminate ID`.

use crate::cli::Failure;
use crate::cli::client::{One, print_agreement};
use crate::negotiation::terminate_input;

pub(in crate::cli) async fn run(One { id, server }: One) -> Result<(), Failure> {
    let id = server.id_of(&id).await?;
    let path = format!("/agreements/{id}/terminate");
    let answer = server.post(&path, terminate_input().into_bytes()).await?;
    server.show(answer, print_agreement)
}
