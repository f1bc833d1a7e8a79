"""The sign-up form: an address and a consent. No output and no widget's saved state holds the address."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from nbext.core.wire import email_of
from nbext.errors import OutcomeUnknown, UsageError
from nbext.notebook.forms.form import Form, Steps, message_of, notebook_client, what_is_wrong
from nbext.notebook.views.view import Button, InputField, row

if TYPE_CHECKING:
    from nbext.client import Client

# Half an address is always wrong: it is checked only when typing pauses this long.
PAUSE = 0.8
PRIVACY = "A notebook that is saved meanwhile does not contain the address."
THANKS = "Thank you. The sign-up is recorded; nbext itself sends no mail."
UNKNOWN = (
    "No answer says that this address was signed up. The sign-up may have been recorded. You can safely sign up again: "
    "the service stores an address once."
)


class SignUpForm(Form):
    """Register an e-mail address for the newsletter; a click, or Enter, sends it once."""

    title = "Newsletter sign-up"
    hint = "The address goes to the service that this notebook uses. No output of the notebook contains it."
    unsaid = "No sign-up was sent."

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        # The address that is being sent: the field may hold another one by the time that the answer quotes it.
        self._sent = ""
        self.email = InputField(
            "E-mail address",
            examples="name@example.org",
            help=PRIVACY,
            width="420px",
            required=True,
            changed=self._edited,
            entered=self.send,
        )
        agree = "I agree that this address is stored for the newsletter."
        self.consent = InputField(agree, False, width="auto", required=True, changed=self._allow)
        self.go = Button("Sign up", self.send, classes="nbext-main nbext-signup")
        self.assemble(self.email, self.consent, row(self.go), self.status)
        self._allow()

    def send(self) -> None:
        """Send the address, once, if it is valid and consent is given."""
        address = self.email.value.strip()
        # A second click, or Enter and a click, finds the first under way or the field already cleared.
        if self._sent or not address:
            return
        self._check()
        if self.email.error:
            return
        if not self.consent.value:
            self.say("Please agree that the address is stored. Nothing was sent.", "bad")
            return
        self._sent = address
        self._allow()
        self.say("Sending …")
        self.background.schedule(self._sign_up)

    def _sign_up(self) -> Steps:
        said = THANKS, "good"
        try:
            yield partial(self.client.sign_up, self._sent)
        except OutcomeUnknown:
            # Cleared as if it had gone well: a second attempt is the user's decision, never a retry of ours.
            said = UNKNOWN, "bad"
        # Another address that was typed meanwhile is not signed up, and must not vanish as if it were.
        if self.email.value.strip() == self._sent:
            self.email.type("")
            self.consent.type(False)
        self.say(*said)
        self._ended()

    def _ended(self) -> None:
        self._sent = ""
        self._allow()
        self.renew()

    def failed(self, error: Exception) -> None:
        """Show an error inside the form, without the address: a service may echo it, and outputs are saved."""
        text = message_of(error)
        # The client lower-cases the domain before it sends, so an echo may be spelt in either way.
        for spelling in (self._sent, email_of(self._sent)) if self._sent else ():
            text = re.sub(re.escape(spelling), "the address", text, flags=re.IGNORECASE)
        self._ended()
        super().failed(UsageError(text))

    def _edited(self) -> None:
        self.email.error = ""
        self._allow()
        if self.email.value and not self._sent:
            self.say("")
            self.background.schedule(self._check, after=PAUSE)

    def _check(self) -> None:
        if address := self.email.value.strip():
            self.email.error = what_is_wrong(email_of, address)

    def _allow(self) -> None:
        ready = self.consent.value and bool(self.email.value.strip()) and not self._sent
        self.go.show(disabled=not ready)

    def magic(self) -> str:
        """Return the call that signs an address up: no magic does, as its line would be saved with the address."""
        return 'nbext.connect().sign_up("name@example.org")'


def signup_form(*, client: Client | None = None) -> SignUpForm:
    """Return a form that registers an e-mail address for the newsletter.

    No output contains the address, and sending it clears it from the form.
    """
    return SignUpForm(notebook_client(client))
