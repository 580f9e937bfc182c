//! Components put together byte by byte (the binary format of WebAssembly and of its component model): toolchains make
//! none with so many memories, tables and instances.

/// The preamble of a component.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// The preamble of a core module.
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// What every core module here has: one function without parameters and results, exported as `f`.
#[derive(Clone, Debug, Default)]
pub(super) struct Module {
    /// Pages of a memory that it has from the start.
    pub(super) pages: Option<u32>,
    /// Elements of a table that it has from the start.
    pub(super) elements: Option<u32>,
    /// Grows its table by so many when it is instantiated, and traps when that is refused.
    pub(super) grows_by: Option<u32>,
}

/// A component with one instance of each of these modules, which exports the functions of the plugin interface with no
/// parameters and no results: it is instantiated before its types are found to be wrong.
pub(super) fn component(modules: &[Module]) -> Vec<u8> {
    let mut bytes = COMPONENT.to_vec();
    for module in modules {
        bytes.extend(section(1, &module.bytes()));
    }
    let instances: Vec<Vec<u8>> = (0..modules.len()).map(|index| [vec![0], number(index), vec![0]].concat()).collect();
    bytes.extend(section(2, &list(&instances)));
    // The function `f` of the first instance, as a core function.
    bytes.extend(section(6, &list(&[[vec![0, 0, 1, 0], name("f")].concat()])));
    // The type of a function without parameters and results.
    bytes.extend(section(7, &list(&[vec![0x40, 0, 1, 0]])));
    // The core function lifted to that type.
    bytes.extend(section(8, &list(&[vec![0, 0, 0, 0, 0]])));
    let exports: Vec<Vec<u8>> =
        ["describe", "check", "step"].map(|function| [extern_name(function), vec![1, 0]].concat()).to_vec();
    bytes.extend(section(5, &list(&[[vec![1], list(&exports)].concat()])));
    let export = [extern_name("switchbell:delivery/plugin@0.1.0"), vec![5, 0, 0]].concat();
    bytes.extend(section(11, &list(&[export])));
    bytes
}

impl Module {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = MODULE.to_vec();
        bytes.extend(section(1, &list(&[vec![0x60, 0, 0]])));
        bytes.extend(section(3, &list(&[vec![0]])));
        if let Some(elements) = self.elements {
            bytes.extend(section(4, &list(&[[vec![0x70, 0], number(elements as usize)].concat()])));
        }
        if let Some(pages) = self.pages {
            bytes.extend(section(5, &list(&[[vec![0], number(pages as usize)].concat()])));
        }
        bytes.extend(section(7, &list(&[[name("f"), vec![0, 0]].concat()])));
        if self.grows_by.is_some() {
            bytes.extend(section(8, &number(0)));
        }
        let code = [vec![0], self.grows_by.map_or_else(Vec::new, grows), vec![0x0b]].concat();
        bytes.extend(section(10, &list(&[[number(code.len()), code].concat()])));
        bytes
    }
}

/// `ref.null func; i32.const N; table.grow 0; i32.const -1; i32.eq; if; unreachable; end`
fn grows(by: u32) -> Vec<u8> {
    [vec![0xd0, 0x70, 0x41], signed(by), vec![0xfc, 15, 0, 0x41, 0x7f, 0x46, 0x04, 0x40, 0x00, 0x0b]].concat()
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [vec![id], number(content.len()), content.to_vec()].concat()
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    [number(items.len()), items.concat()].concat()
}

fn name(text: &str) -> Vec<u8> {
    [number(text.len()), text.as_bytes().to_vec()].concat()
}

/// A name of an import or export of a component.
fn extern_name(text: &str) -> Vec<u8> {
    [vec![0], name(text)].concat()
}

/// Unsigned LEB128.
fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// Signed LEB128 of a number that is not negative.
fn signed(value: u32) -> Vec<u8> {
    let mut bytes = number(value as usize);
    if let Some(last) = bytes.last_mut()
        && *last & 0x40 != 0
    {
        *last |= 0x80;
        bytes.push(0);
    }
    bytes
}
