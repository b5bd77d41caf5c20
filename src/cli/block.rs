//! `loadline block`, as written. Main type: [`BlockAction`].

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `block`
#[derive(Debug, Clone, Subcommand)]
pub enum BlockAction {
    /// Makes keys for the data centre and for cameras; existing keys stay
    Keys {
        /// Directory for the keys
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Cameras, each of which gets a key
        #[arg(value_name = "CAMERA")]
        cameras: Vec<String>,
    },
    /// Makes blocks of generated violations with drawn images, or of an existing record and image
    Make(MakeArguments),
    /// Verifies the signatures of blocks, and decrypts nothing
    Verify {
        /// Blocks
        #[arg(required = true, value_name = "FILE")]
        blocks: Vec<PathBuf>,
        /// The cameras' public keys, in the form of allowed_signers
        #[arg(long, value_name = "FILE")]
        signers: PathBuf,
        /// The camera that must have signed them; without it, any known camera
        #[arg(long)]
        camera: Option<String>,
    },
    /// Verifies, decrypts and checks blocks, and writes their records and images
    Open {
        /// Blocks
        #[arg(required = true, value_name = "FILE")]
        blocks: Vec<PathBuf>,
        /// The cameras' public keys, in the form of allowed_signers
        #[arg(long, value_name = "FILE")]
        signers: PathBuf,
        /// The data centre's secret keys, as age-keygen writes them
        #[arg(long, value_name = "FILE")]
        identity: PathBuf,
        /// The camera that must have signed them; without it, the one whose key signed them
        #[arg(long)]
        camera: Option<String>,
        /// Directory for the files: CAMERA-SEQUENCE.xml and CAMERA-SEQUENCE.jpg
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Lists the blocks that the processing refused, or gives them back to it
    Quarantine {
        /// Configuration of the recorder
        #[arg(value_name = "CONFIG.toml")]
        config: PathBuf,
        /// Gives them back, so that they are processed again
        #[arg(long)]
        replay: bool,
        /// Takes only those of this camera
        #[arg(long)]
        camera: Option<String>,
    },
    /// Erases violations for good, with their records and images; the audit file says at whose request and why
    Erase {
        /// Configuration of the recorder
        #[arg(value_name = "CONFIG.toml")]
        config: PathBuf,
        /// Numbers of the violations, as the ticket office shows them
        #[arg(required = true, value_name = "NUMBER")]
        numbers: Vec<i64>,
        /// Who requests it; this is written into the audit file
        #[arg(long, value_name = "NAME")]
        by: String,
        /// Why; this is written into the audit file
        #[arg(long)]
        reason: String,
    },
}

/// `block make`
#[derive(Debug, Clone, Args)]
pub struct MakeArguments {
    /// The data centre's public key (age1...), or a file with it
    #[arg(long, value_name = "KEY")]
    pub recipient: String,
    /// The camera's private key, as ssh-keygen -t ed25519 writes it
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// Directory for the blocks: CAMERA-SEQUENCE.block
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The camera's name
    #[arg(long, required_unless_present = "record")]
    pub camera: Option<String>,
    /// Sequence of the first violation
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub first: u64,
    /// How many blocks
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub count: u64,
    /// Seed of violations and images
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Width of the images in pixels; 1280 makes blocks of about 0.15 MB, 4000 of 1 MB, 5400 of 1.9 MB
    #[arg(long, value_name = "PIXELS", default_value_t = 1280, value_parser = clap::value_parser!(u16).range(64..=8192))]
    pub width: u16,
    /// A record instead of generated ones: violation.xml
    #[arg(long, value_name = "FILE", requires = "image", conflicts_with_all = ["camera", "first", "count", "seed", "width"])]
    pub record: Option<PathBuf>,
    /// The record's image: a JPEG
    #[arg(long, value_name = "FILE", requires = "record")]
    pub image: Option<PathBuf>,
}
