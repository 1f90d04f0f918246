"""Addresses: which of them are this machine alone."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Tell whether a host's name or address is this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback
