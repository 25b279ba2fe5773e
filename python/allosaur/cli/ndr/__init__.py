"""What `allosaur ndr` and `allosaur compare` do: the limits of a device, measured, shown and compared."""
