"""The sign-up form: an address and a consent. The address is in no output, and leaves the form once it was sent.

Until then it is the value of a widget. Where a front end is told to save widgets' state (JupyterLab is not, by
default), every value of every living widget goes into the notebook, by the front end's own code: no widget can be
left out of it. So an address that is not sent soon is taken out of the form, and the form says all this.
"""

from __future__ import annotations

import re
from typing import Any

import ipywidgets as w

from nbext.client.validate import email_of
from nbext.core.constants import MAX_EMAIL
from nbext.core.untrusted_text import html
from nbext.errors import OutcomeUnknown
from nbext.notebook.forms.form import Background, Form, Twin, message_of
from nbext.notebook.forms.widgets import button, row, text_field, with_classes

# A half-typed address is not called wrong before typing pauses this long.
PAUSE = 0.8
# An address that nobody sends stays in the form this long after the last key.
KEPT = 120.0
KEPT_WORDS = (
    "It is taken out of this form once it was sent, or after two minutes without typing. Until then, a notebook "
    "that is saved together with the state of its widgets holds it; JupyterLab does so only where it is told to."
)
FORGOTTEN = (
    "The address was not sent within two minutes, so it was taken out of the form: a notebook that is saved from now "
    "on does not hold it."
)
THANKS = "Thank you. The sign-up is recorded; nothing is sent from here."


class SignUpForm(Form):
    """Register an e-mail address for the newsletter; a click, or Enter, sends it once."""

    title = "Newsletter sign-up"
    hint = "The address goes to the service that answers this notebook, and is in no output of the notebook."

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self._sending = False
        self.forgetting = Background(self.failed)
        self.email = text_field("E-mail address", placeholder="name@example.org", help=KEPT_WORDS, width="420px")
        self.email.changed(lambda _: self._edited()).entered(self.once_typed(self.send))
        self.consent = with_classes(
            w.Checkbox(description="I agree that this address is stored for the newsletter.", indent=False),
            "nbext-consent",
        )
        self.consent.layout.width = "auto"
        self.consent.observe(lambda _: self._allow(), names="value")
        self.go = button("Sign up", self.once_typed(self.send), classes="nbext-main nbext-signup")
        self.assemble(self.email.widget, self.consent, row(self.go), self.status)
        self._allow()

    def send(self) -> None:
        """Send the address, once, if it is one and consent is given."""
        address = self.email.value.strip()
        # A second click, or Enter and a click, finds the first under way or the field already cleared.
        if self._sending or not address:
            return
        self.email.error = what_is_wrong(address)
        if self.email.error:
            return
        if not self.consent.value:
            self.say("Please agree that the address is stored; without it nothing is sent.", "bad")
            return
        self._sending = True
        self._allow()
        self.say("Sending …")
        self.background.ask(lambda: self._send(address))

    def _send(self, address: str) -> None:
        try:
            self.client.sign_up(address)
        except OutcomeUnknown:
            self._clear()
            self.say("The connection ended before the answer came. The sign-up may be recorded: signing up "
                     "again is safe, an address is stored once.", "bad")  # fmt: skip
        except Exception as error:  # noqa: BLE001  the edge of a widget: what it catches is shown in the form
            # A service may echo the address in its answer; the form's outputs must not hold it.
            self.say(_without(address, message_of(error)), "bad")
        else:
            self._clear()
            self.say(THANKS, "good")
        finally:
            self._sending = False
            self._allow()
            self.renew()

    def _clear(self) -> None:
        self.email.entry.value = ""
        self.consent.value = False

    def _edited(self) -> None:
        self.email.error = ""
        self._allow()
        if self.email.value:
            self.forgetting.ask(self._forget, after=KEPT)
            if not self._sending:
                self.say("")
                self.background.ask(self._check, after=PAUSE)

    def _forget(self) -> None:
        if self._sending:
            self.forgetting.ask(self._forget, after=KEPT)
        elif self.email.value:
            self._clear()
            self.say(FORGOTTEN)
            self.renew()

    def _check(self) -> None:
        if self.email.value.strip():
            self.email.error = what_is_wrong(self.email.value.strip())

    def _allow(self) -> None:
        ready = self.consent.value and bool(self.email.value.strip()) and not self._sending
        self.go.disabled = not ready

    def twin(self) -> Twin:
        """Whether a sign-up was recorded; never whose."""
        said = self.said or "Nothing was sent."
        return Twin(f"<p>{html(said, None)}</p>", f"{self.title}: {said}")


def what_is_wrong(address: str) -> str:
    """Return why a text is no e-mail address, or an empty text. Nothing is asked of the network."""
    from email_validator import EmailNotValidError, validate_email

    # Before the parser, which takes seconds for a megabyte.
    if len(address) > MAX_EMAIL:
        return f"{len(address):,} characters; an address has at most {MAX_EMAIL}."
    try:
        validate_email(address, check_deliverability=False)
    except EmailNotValidError as error:
        return str(error)
    return ""


def _without(address: str, text: str) -> str:
    """Return a text with neither the address as it was typed nor as it was sent."""
    for spelling in (address, email_of(address)):
        text = re.sub(re.escape(spelling), "the address", text, flags=re.IGNORECASE)
    return text
