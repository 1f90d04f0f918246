"""Problem details over HTTP show no addresses of servers."""

import pytest

from api.http.problems import without_addresses


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            'connection to server at "10.0.0.5", port 5432 failed: Connection refused',
            "connection to server at … failed: Connection refused",
        ),
        ('connection to server at "db" (10.0.0.5), port 5432 failed', "connection to server at … failed"),
        ('connection to server on socket "/srv/.s.PGSQL.5432" failed', "connection to server on socket … failed"),
        ('password authentication failed for user "ebb"', "password authentication failed for user …"),
        ("failed to resolve host 'db.internal': unknown", "failed to resolve host …: unknown"),
        (
            "Error 111 connecting to 10.0.0.6:6379. Connection refused.",
            "Error 111 connecting to …. Connection refused.",
        ),
        ("Error 2 connecting to unix socket: /srv/redis.sock. No", "Error 2 connecting to unix socket: … No"),
        ("No worker serves the queue 'recall'. Start workers.", "No worker serves the queue 'recall'. Start workers."),
    ],
)
def test_addresses_are_left_out_of_what_is_said_of_servers(said: str, shown: str) -> None:
    assert without_addresses(said) == shown
