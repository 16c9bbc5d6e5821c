"""What a test needs: a clock to set, stores that misbehave on request, and conformance classes for adapters.

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def store(self) -> Store:
            return MyStore()

Import from the modules: only `toolgate.testing.conformance` needs pytest.
"""
