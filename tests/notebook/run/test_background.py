"""A segment in the background, on a service that takes its time."""

from __future__ import annotations

import time
from concurrent.futures import wait

import pytest

from nbext.client import Client
from nbext.errors import DeadlineExceeded, QueryCancelled
from nbext.notebook.cell.request import SegmentQuery
from nbext.notebook.run.background import BackgroundSegment
from tests.notebook.slow_service import SEGMENT, slow_service


@pytest.fixture
def running():
    """A handle on a segment that is still running at the service, and the service."""
    with slow_service() as service:
        service.answers["GET /about"] = (0, 200, {"service": "nbext", "data": {}})
        service.answers["POST /v1/segment/execute"] = (0, 202, SEGMENT)
        service.answers["GET /v1/segment/seg_1"] = (0.1, 200, SEGMENT)
        service.answers["DELETE /v1/segment/seg_1"] = (0, 200, {**SEGMENT, "status": "cancelled"})
        client = Client(service.url, "key")
        assert client.is_ours
        handle = BackgroundSegment(
            client, SegmentQuery({"token": {"token": "UNI"}}, "AND", "json", 10)
        )
        until = time.monotonic() + 20
        while handle.segment_id is None and time.monotonic() < until:
            time.sleep(0.01)
        yield handle, service
        handle.cancel()
        wait([handle._future], 10)
        client.close()


def test_a_segment_that_runs_on_says_so_and_can_be_waited_for_again(running):
    handle, _ = running
    assert handle.status == "running"
    with pytest.raises(DeadlineExceeded) as caught:
        handle.result(0.05)
    assert str(caught.value) == "The segment is still running after 0.05 s."
    assert caught.value.segment_id == "seg_1"
    assert handle.status == "running"


def test_a_segment_that_is_cancelled_before_it_has_an_id_is_ended_at_the_service_once_it_has():
    with slow_service() as service:
        service.answers["GET /about"] = (0, 200, {"service": "nbext", "data": {}})
        service.answers["POST /v1/segment/execute"] = (0.3, 202, SEGMENT)
        service.answers["GET /v1/segment/seg_1"] = (0.1, 200, SEGMENT)
        service.answers["DELETE /v1/segment/seg_1"] = (0, 200, {**SEGMENT, "status": "cancelled"})
        client = Client(service.url, "key")
        asked = SegmentQuery({"token": {"token": "UNI"}}, "AND", "json", 10)
        handle = BackgroundSegment(client, asked)
        handle.cancel()
        with pytest.raises(QueryCancelled):
            handle.result(20)
        assert ("DELETE", "/v1/segment/seg_1") in service.asked
        client.close()


def test_cancelling_at_another_service_ends_it_here_alone_and_says_so():
    with slow_service() as service:
        service.answers["POST /v1/segment/execute"] = (0, 202, {"id": "seg_1", "status": "running"})
        service.answers["GET /v1/segment/seg_1"] = (0.1, 200, {"id": "seg_1", "status": "running"})
        client = Client(service.url, "key")
        asked = SegmentQuery({"token": {"token": "UNI"}}, "AND", "json", 10)
        handle = BackgroundSegment(client, asked)
        until = time.monotonic() + 20
        while handle.segment_id is None and time.monotonic() < until:
            time.sleep(0.01)
        handle.cancel()
        with pytest.raises(QueryCancelled) as caught:
            handle.result(20)
        assert str(caught.value) == (
            "Interrupted. Segment seg_1 may still be running at the service."
        )
        # Nobody is known to take that but nbext's own service.
        assert "DELETE" not in {method for method, _ in service.asked}
        client.close()


def test_cancelling_ends_it_here_and_at_the_service(running):
    handle, service = running
    handle.cancel()
    with pytest.raises(QueryCancelled) as caught:
        handle.result(20)
    assert str(caught.value) == "Interrupted. Segment seg_1 was stopped."
    assert handle.status == "cancelled"
    assert repr(handle) == "<segment in the background: cancelled>"
    assert ("DELETE", "/v1/segment/seg_1") in service.asked
