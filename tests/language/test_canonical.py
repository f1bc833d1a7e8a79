"""A segment's id is kept: notebooks, saved segments and links name segments by it."""

from __future__ import annotations

import pytest

from nbext.language import language
from tests.engine.forms import FORMS, LISTS, STORED, WORLD
from tests.language.tables import WorldDataset

# Made when the grammar got its number; where one changes, `nbext.language.fields.GRAMMAR` must rise.
IDS = {
    "token": "sg_xSNaMFJHZ9UtHsfbCPpz6xF8",
    "token_min": "sg_ObzY9tJ949ugYgHQq-yJLl98",
    "token_max": "sg_ySNyI9HXNebu3IYjr_mT4wq7",
    "token_between_many_digits": "sg_YOdj8RWmMmhfkblngb0athGo",
    "token_none_too": "sg_vW93YOgHS4v7KHNP8pzTXtki",
    "token_held_since": "sg_DpJyCQ1kI-j0aXazbtUWTR4M",
    "token_as_of": "sg_G9gLIHKuj67gWnlweM19QOB8",
    "token_held_since_as_of": "sg_TzdgG1Q9KG5_W-zZftf9cTOV",
    "token_on_a_chain": "sg_z_w4O4gTbC5zpgAMKGAiqaVk",
    "nft": "sg_Swcey2zo4WZyr-hY3z5tqCsK",
    "nft_ids": "sg_74kE7SsMXGnD1MTtDCWn2fHw",
    "nft_ids_held_since": "sg_GOG3dJCiQGeGlL7rJs0mUhqM",
    "nft_ids_of_a_multi_token": "sg_jexTtWcwt7SEb5abNys6Mj5M",
    "nft_multi_token_as_of": "sg_63SQ8RZ-InIltajSb3BnYW6G",
    "collections_at_least": "sg_9zljUR4z2wsufs1FIJmcJxtx",
    "collections_distinct": "sg_lQlIovhObdqcc7qqmnkvMoiB",
    "transfer_in": "sg_aAHUug3AJCBIZ0XUrtPx_tyL",
    "transfer_out": "sg_bI0mz0jPQ9-pDkCn3dQEnn4K",
    "transfer_any": "sg_bo_BQkJGoK9nYkYENDtp4D9Y",
    "transfer_window": "sg_RMpB7KZqxVjQFu7YBEcrzP8o",
    "transfer_mint": "sg_aqfYr2Y1hTykl3Dkm-S8Cid1",
    "transfer_burn": "sg_egcb0Q0LtY58Kf_UQk3aWu22",
    "transfer_counterparty": "sg_EnyG-n48a4m-ke9aCdB2ILqq",
    "transfer_total": "sg_UoZwOIC4kxyn9eObIEFPuS23",
    "activity_first": "sg_Rq6xYAVSBmv0gvDgJL2knDGc",
    "activity_last": "sg_QMviyMGHGwUTASaK1qbVrhRf",
    "activity_transfers": "sg_ebHBtFvDhqNCUL3HdwZ2UOQt",
    "activity_as_of": "sg_RtnDSUnNw8ZDEaRSVsqxi8zB",
    "wallet_in": "sg_Jx0ghaizEHPYJQPgnQD3v6zS",
    "wallet_contract": "sg_6YJJSzmAgXq6v4mmHn4DpeAi",
    "wallet_list": "sg_az2xHZVJR6TiZfXzz7_UJcwy",
    "segment": "sg_p6lSDRHH7oY6KODCUntUJ6MY",
    "all_any_not": "sg_NlxVl4N69E31yzYHywd0Uz1-",
    "seven_of_nine": "sg_IR9COocCW0XxXoWgwHajfUrA",
    "not_alone": "sg_nkMTrCy1gLGfur56-XqF6Ii9",
    "not_nft_as_of": "sg_RdMy_GLhXNpiaw89oxPTf8xV",
    "exclude_nothing": "sg_vEtchxvn0EwYaWIE6_Y4DqAt",
    "order_by_balance": "sg_bAC2orA-_FQLH7rSnB72pT_f",
    "order_by_count": "sg_dLhuJzvWxS6CLg_gfkzTGCyN",
    "order_by_address": "sg_n181o1qu-UIFhzLgxKnoLTzq",
    "order_by_time": "sg_R6GVWk1zpchKFplQNFgy98Wy",
    "order_by_days_as_of": "sg_T0MJ9Sf4ecz5ECOLxMgLDIQn",
    "shares": "sg_VgPGE7xefjUEOb9-SZepEFkv",
    "share_as_of": "sg_5CmuS0V_CKtH057tu3BKKh3e",
    "transferred": "sg_lUDwmZbr5GgLZq2IraVsCx6m",
    "transferred_of_nfts": "sg_yCotaKAs9yAJRvCWpznQjhxM",
}


@pytest.fixture(scope="module")
def dataset():
    opened = WorldDataset(WORLD)
    yield opened
    opened.close()


@pytest.mark.parametrize("form", FORMS)
def test_the_id_of_a_known_segment_stays(form, dataset):
    query = language.parse({"filters": FORMS[form], "limit": 100})
    plan = language.resolve(query, dataset, {"stored": STORED}.get, LISTS.get)
    assert language.segment_id(plan, "f0f0f0") == IDS[form]
