"""A black-box conformance suite for servers of `kinference.v1.Picker`, ours or anyone's."""
