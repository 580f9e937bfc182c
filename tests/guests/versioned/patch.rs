//! Makes a version of the guest `versioned` by writing into its built file. The unit tests and the integration tests share
//! this file.

/// The component with these fields: `name`, `version`, `behaviour` and `repeat`; the others stay as they are.
pub(crate) fn patch(mut component: Vec<u8>, fields: &[(&str, &str)]) -> Vec<u8> {
    for (key, value) in fields {
        let marker = format!("<versioned {key}:");
        let places: Vec<usize> = component
            .windows(marker.len())
            .enumerate()
            .filter(|(_, window)| *window == marker.as_bytes())
            .map(|(at, _)| at)
            .collect();
        let [place] = places.as_slice() else { panic!("{marker:?} occurs {} times", places.len()) };
        let start = place + marker.len();
        let width = component[start..].iter().position(|byte| *byte == b'>').unwrap();
        assert!(value.len() <= width, "{key} has room for {width} bytes, not for {value:?}");
        component[start..start + width].copy_from_slice(format!("{value:width$}").as_bytes());
    }
    component
}
