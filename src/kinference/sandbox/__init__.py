"""The part of inference that runs inside a sandbox: `inference.local`, served by whatever the routes say."""
