"""The process beside the driver, which plans. `docs/PROTOCOL.md`, section 9, is what it speaks."""
