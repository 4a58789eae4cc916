//! `bespeak templates`.

use crate::cli::Failure;
use crate::cli::client::Server;
use crate::cli::table::{print_rows, row};
use service::TemplateView;

pub(in crate::cli) async fn list_templates(server: &Server) -> Result<(), Failure> {
    let answer = server.get("/templates").await?;
    server.print_answer(answer, |templates: &Vec<TemplateView>| {
        let rows = templates
            .iter()
            .map(|template| row([&template.id, &template.name]));
        print_rows(rows.collect(), &[]);
    })
}
