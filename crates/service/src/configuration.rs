//! The configuration: read again and taken over, with the templates as the resources allow.

use std::collections::BTreeMap;

use domain::resources::Resource;
use planner::{Configure, ResourceChanges};
use store::templates;
use tokio::sync::oneshot;

use crate::views::resource_changes::{ReloadOrder, ReloadedView};
use crate::{Error, Service, Templates};

/// Has the configuration be read again; with `is_dry` it is only answered what would follow. For operators.
///
/// # Errors
/// [`Error::Conflict`] where it has a fault, which changes nothing; [`Error::Unavailable`].
pub async fn reload_configuration(
    service: &Service,
    party: &str,
    is_dry: bool,
) -> Result<ReloadedView, Error> {
    let reloading = service.reloading.as_ref().ok_or(Error::Unavailable)?;
    let (reply, told) = oneshot::channel();
    let order = ReloadOrder {
        party: party.to_owned(),
        is_dry,
        reply,
    };
    reloading.send(order).await.map_err(|_| Error::Unavailable)?;
    told.await.unwrap_or(Err(Error::Unavailable))
}

/// Takes over a configuration with its templates, as its resources allow; of a dry run nothing is kept. The templates are
/// stored first, so that nothing that can fail is left once the rest is stored.
///
/// # Errors
/// Those of [`Configure`], [`Error::Unavailable`] where the templates could not be stored.
pub async fn apply_configuration(
    service: &Service,
    reconfiguration: Configure,
    templates: &Templates,
    is_dry: bool,
) -> Result<ResourceChanges, Error> {
    let _alone = service.fitting.lock().await;
    let would = service.send_or_try(reconfiguration.clone(), true).await?;
    if is_dry {
        return Ok(would);
    }
    let mut resources: BTreeMap<String, Resource> = BTreeMap::new();
    let there = service.planner.resources();
    let changed = would.resources.iter().map(|(resource, _)| resource);
    resources.extend(
        there
            .iter()
            .chain(changed)
            .map(|each| (each.name.clone(), each.clone())),
    );
    let resources: Vec<Resource> = resources.into_values().collect();
    let fitted = templates.fitted_to(&resources).map_err(Error::Internal)?;
    templates::keep_template_versions(&service.store, &fitted.versions()).await?;
    let changes = service.send(reconfiguration).await?;
    service.templates.replace(fitted);
    Ok(changes)
}

/// Offers the templates as the resources allow now.
///
/// # Errors
/// [`Error::Unavailable`] where they could not be stored.
pub async fn fit_templates_to_resources(service: &Service) -> Result<(), Error> {
    let _alone = service.fitting.lock().await;
    let now = service.templates.now();
    let resources = service.planner.resources();
    if now.fit(&resources) {
        return Ok(());
    }
    let fitted = now.fitted_to(&resources).map_err(Error::Internal)?;
    templates::keep_template_versions(&service.store, &fitted.versions()).await?;
    service.templates.replace(fitted);
    Ok(())
}
