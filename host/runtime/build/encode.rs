// How a core module becomes a component.

/// Wraps a module that carries its world in a custom section.
pub(crate) fn encode(module: &[u8]) -> Result<Vec<u8>, String> {
    wit_component::ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|encoder| encoder.encode())
        .map_err(|error| format!("the module is no component: {error:#}"))
}
