WITH "matched" AS (
  SELECT
    "t8"."wallet"
  FROM (
    SELECT
      "t0"."wallet"
    FROM "lake"."nbext"."balances" AS "t0"
    WHERE
      "t0"."contract" = 0 AND "t0"."size" >= 1000000000
  ) AS "t8"
  WHERE
    (
      EXISTS(
        SELECT
          1
        FROM (
          SELECT
            "t1"."wallet"
          FROM "lake"."nbext"."history" AS "t1"
          WHERE
            "t1"."contract" = 0
            AND "t1"."from_block" <= 120
            AND "t1"."to_block" > 120
            AND "t1"."size" >= 1000000000
        ) AS "t9"
        WHERE
          "t8"."wallet" = "t9"."wallet"
      )
      AND NOT EXISTS(
        SELECT
          1
        FROM (
          SELECT
            "t1"."wallet"
          FROM "lake"."nbext"."history" AS "t1"
          WHERE
            "t1"."contract" = 0
            AND "t1"."to_block" > 120
            AND "t1"."from_block" < "t1"."to_block"
            AND NOT (
              "t1"."size" >= 1000000000
            )
        ) AS "t11"
        WHERE
          "t8"."wallet" = "t11"."wallet"
      )
    )
    AND NOT EXISTS(
      SELECT
        1
      FROM (
        SELECT
          "t3"."wallet"
        FROM "lake"."nbext"."wallets" AS "t3"
        WHERE
          EXISTS(
            SELECT
              1
            FROM (
              SELECT
                IF(_u.pos = _u_2.pos_2, _u_2."address") AS "address"
              FROM UNNEST(SEQUENCE(
                1,
                GREATEST(
                  CARDINALITY(
                    ARRAY['0x0000000000000000000000000000000000000000', '0x000000000000000000000000000000000000dead']
                  )
                )
              )) AS _u(pos)
              CROSS JOIN UNNEST(ARRAY['0x0000000000000000000000000000000000000000', '0x000000000000000000000000000000000000dead']) WITH ORDINALITY AS _u_2("address", pos_2)
              WHERE
                _u.pos = _u_2.pos_2
                OR (
                  _u.pos > CARDINALITY(
                    ARRAY['0x0000000000000000000000000000000000000000', '0x000000000000000000000000000000000000dead']
                  )
                  AND _u_2.pos_2 = CARDINALITY(
                    ARRAY['0x0000000000000000000000000000000000000000', '0x000000000000000000000000000000000000dead']
                  )
                )
            ) AS "t7"
            WHERE
              "t3"."address" = "t7"."address"
          )
      ) AS "t13"
      WHERE
        "t8"."wallet" = "t13"."wallet"
    )
), "returned" AS (
  SELECT
    *
  FROM "matched" AS "t0"
  ORDER BY
    "t0"."wallet" ASC
  LIMIT 100
)
SELECT
  "t10"."address",
  "t10"."USDC_balance_raw",
  (
    SELECT
      COUNT(*)
    FROM "matched"
  ) AS "matched"
FROM (
  SELECT
    "t5"."wallet",
    "t5"."address",
    "t9"."USDC_balance_raw"
  FROM (
    SELECT
      "t0"."wallet",
      "t0"."address"
    FROM "lake"."nbext"."wallets" AS "t0"
  ) AS "t5"
  LEFT OUTER JOIN (
    SELECT
      "t7"."wallet",
      "t7"."USDC_balance_raw"
    FROM (
      SELECT
        "t2"."wallet",
        TRY_CAST(ROW("t2"."hi", "t2"."mid", "t2"."lo") AS ROW("hi" DECIMAL(38, 0), "mid" DECIMAL(38, 0), "lo" DECIMAL(38, 0))) AS "USDC_balance_raw"
      FROM "lake"."nbext"."balances" AS "t2"
      WHERE
        "t2"."contract" = 0 AND "t2"."size" >= 1000000000
    ) AS "t7"
    WHERE
      EXISTS(
        SELECT
          1
        FROM "returned" AS "t3"
        WHERE
          "t7"."wallet" = "t3"."wallet"
      )
  ) AS "t9"
    ON "t5"."wallet" = "t9"."wallet"
  WHERE
    EXISTS(
      SELECT
        1
      FROM "returned" AS "t3"
      WHERE
        "t5"."wallet" = "t3"."wallet"
    )
) AS "t10"
ORDER BY
  "t10"."address" ASC
