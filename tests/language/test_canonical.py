"""A segment's id is kept: notebooks, saved segments and links name segments by it."""

from __future__ import annotations

import pytest

from nbext.language import language
from tests.engine.forms import FORMS, STORED, WORLD
from tests.language.tables import WorldDataset

# Made when the grammar got its number; where one changes, `nbext.language.fields.GRAMMAR` must rise.
IDS = {
    "token": "sg_B3yA5DuZCGjOmMCksDOZuhUb",
    "token_min": "sg_oJFRE-WOi4gEe4TSvRaN83NA",
    "token_max": "sg_9vKMQgEL9qwQydISZKANf7-j",
    "token_between_many_digits": "sg_vfanTI1boxGQEvdTCMy-WuSV",
    "token_none_too": "sg_VT3fzWmD65MUARah3AhCZ__O",
    "token_held_since": "sg_sl41JbQFzrvUn57LVU96eifU",
    "token_as_of": "sg_wctFf54HskRVbx9UQXgYqm4S",
    "token_held_since_as_of": "sg_V4Cs7GrfBRgMOcXSw0lrpNKb",
    "token_on_a_chain": "sg_gOu_27MFDo2_BTTlw9-vBq37",
    "nft": "sg_0w_17a7s0FPwXzW6FAsg-o6H",
    "nft_ids": "sg_u1aohiDtIBOYVHdxOTeRPFMN",
    "nft_ids_held_since": "sg_Wj4OpqNqsWl7wf4hwaL1GXWT",
    "nft_ids_of_a_multi_token": "sg_8gT1J48mJfs3WadXDgBu4P-F",
    "nft_multi_token_as_of": "sg_dM3Th2iakUFiFrGGp1UB9GjO",
    "collections_at_least": "sg_72IM38jCYFS9XKfaKE6_Bl9m",
    "collections_distinct": "sg_X0_KFA-As6UcH5CPVa-HbciQ",
    "transfer_in": "sg_-WJqlbnZkXdp_DUrxNtUIT1x",
    "transfer_out": "sg_oMwD_ZEG--2q0x_fjzOSupzT",
    "transfer_any": "sg_n701ljJIrI7IOMPyHUV3EfLy",
    "transfer_window": "sg_bmErpp9Be4rqV0kdVAY12EYf",
    "transfer_mint": "sg_ZCdiIUVEVr_R2kLmpPt7xKA8",
    "transfer_burn": "sg_TVc0vlUlGij8vJmFJKiSmyM8",
    "transfer_counterparty": "sg_HOP8V4GQM3TzpU25TvmBNDkI",
    "transfer_total": "sg_Q8DHvKLEfzKeSznh9_5ChdhJ",
    "activity_first": "sg_nEH7rVbP2U7-NvQGXfJI5pDi",
    "activity_last": "sg_klVPGMCru-w3x0uWKjHniWWX",
    "activity_transfers": "sg_AojvJBWrxjUjIxf9u7tUzL-K",
    "activity_as_of": "sg_d1DRqFvNjbQrgtVpUY3NP-zc",
    "wallet_in": "sg_zjI_a_rSI8ZhhcK4tH-TxU8K",
    "wallet_contract": "sg_WU5IFGGedGMKYdtGxRGXXIkR",
    "segment": "sg_h5CLc-miWBUvA5POwqs89gk4",
    "all_any_not": "sg_cM739XlgboRyg34RofCkSUGw",
    "not_alone": "sg_p6Z0bLDkVzERgeitCILkH-2N",
    "exclude_nothing": "sg_Houoi0VgUt8csjErNuHDKEMj",
}


@pytest.mark.parametrize("form", FORMS)
def test_the_id_of_a_known_segment_stays(form):
    query = language.parse({"filters": FORMS[form], "limit": 100})
    plan = language.resolve(query, WorldDataset.unconnected(WORLD), {"stored": STORED}.get)
    assert language.segment_id(plan, "f0f0f0") == IDS[form]
