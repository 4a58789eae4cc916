//! The routes, each with the operation that it leads to.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{self, MethodRouter};

use super::Api;
use super::operation::Operation;

/// Routes, each with its operation: none can be added without one.
#[derive(Default)]
pub(super) struct Routes {
    pub(super) router: Router<Api>,
    /// The operations, each with its path and its method.
    pub(super) operations: Vec<(&'static str, &'static str, Operation)>,
}

impl Routes {
    /// Adds GET of a path.
    pub(super) fn get<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, Api>,
        operation: Operation,
    ) -> Self {
        self.add(path, "get", routing::get(handler), operation)
    }

    /// Adds POST to a path.
    pub(super) fn post<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, Api>,
        operation: Operation,
    ) -> Self {
        self.add(path, "post", routing::post(handler), operation)
    }

    /// Adds PUT of a path.
    pub(super) fn put<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, Api>,
        operation: Operation,
    ) -> Self {
        self.add(path, "put", routing::put(handler), operation)
    }

    /// Adds DELETE of a path.
    pub(super) fn delete<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, Api>,
        operation: Operation,
    ) -> Self {
        self.add(path, "delete", routing::delete(handler), operation)
    }

    /// Adds all routes of others.
    pub(super) fn merge(mut self, others: Self) -> Self {
        self.router = self.router.merge(others.router);
        self.operations.extend(others.operations);
        self
    }

    fn add(
        mut self,
        path: &'static str,
        method: &'static str,
        handlers: MethodRouter<Api>,
        operation: Operation,
    ) -> Self {
        self.router = self.router.route(path, handlers);
        self.operations.push((path, method, operation));
        self
    }
}
