//! `bespeak templates`.

use crate::cli::client::Server;
use crate::cli::{Failure, print_rows, row};
use crate::service::TemplateView;

pub(in crate::cli) async fn run(server: &Server) -> Result<(), Failure> {
    let answer = server.get("/templates").await?;
    server.print_answer(answer, |templates: &Vec<TemplateView>| {
        let rows = templates
            .iter()
            .map(|template| row([&template.id, &template.name]));
        print_rows(rows.collect(), &[]);
    })
}
