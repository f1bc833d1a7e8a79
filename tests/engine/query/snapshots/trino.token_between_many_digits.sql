WITH "matched" AS (
  SELECT
    "t11"."wallet"
  FROM (
    SELECT
      "t9"."wallet"
    FROM (
      SELECT
        *
      FROM (
        SELECT
          "t0"."wallet",
          "t0"."hi",
          "t0"."mid",
          "t0"."lo",
          "t0"."size"
        FROM "lake"."nbext"."balances" AS "t0"
        WHERE
          "t0"."contract" = 1
          AND "t0"."size" > 540000000000000000
          AND "t0"."size" < 6057896044618658097
      ) AS "t4"
      UNION ALL
      SELECT
        *
      FROM (
        SELECT
          "t0"."wallet",
          "t0"."hi",
          "t0"."mid",
          "t0"."lo",
          "t0"."size"
        FROM "lake"."nbext"."balances" AS "t0"
        WHERE
          "t0"."contract" = 1
          AND (
            (
              "t0"."size" = 540000000000000000
            ) OR (
              "t0"."size" = 6057896044618658097
            )
          )
          AND (
            (
              "t0"."size" > 540000000000000000
            )
            OR (
              (
                "t0"."size" = 540000000000000000
              )
              AND (
                (
                  "t0"."hi" > 0
                )
                OR (
                  (
                    "t0"."hi" = 0
                  )
                  AND (
                    (
                      "t0"."mid" > 0
                    )
                    OR (
                      (
                        "t0"."mid" = 0
                      )
                      AND (
                        "t0"."lo" >= CAST('4000000000000000000003' AS DECIMAL(38, 0))
                      )
                    )
                  )
                )
              )
            )
          )
          AND (
            (
              "t0"."size" < 6057896044618658097
            )
            OR (
              (
                "t0"."size" = 6057896044618658097
              )
              AND (
                (
                  "t0"."hi" < CAST('5789604461865809771178549' AS DECIMAL(38, 0))
                )
                OR (
                  (
                    "t0"."hi" = CAST('5789604461865809771178549' AS DECIMAL(38, 0))
                  )
                  AND (
                    (
                      "t0"."mid" < CAST('25043439539266349923328202' AS DECIMAL(38, 0))
                    )
                    OR (
                      (
                        "t0"."mid" = CAST('25043439539266349923328202' AS DECIMAL(38, 0))
                      )
                      AND (
                        "t0"."lo" <= CAST('82019728792003956564819967' AS DECIMAL(38, 0))
                      )
                    )
                  )
                )
              )
            )
          )
      ) AS "t8"
    ) AS "t9"
  ) AS "t11"
  WHERE
    NOT EXISTS(
      SELECT
        1
      FROM (
        SELECT
          "t2"."wallet"
        FROM "lake"."nbext"."wallets" AS "t2"
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
            ) AS "t5"
            WHERE
              "t2"."address" = "t5"."address"
          )
      ) AS "t7"
      WHERE
        "t11"."wallet" = "t7"."wallet"
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
  "t10"."UNI_balance_raw",
  (
    SELECT
      COUNT(*)
    FROM "matched"
  ) AS "matched"
FROM (
  SELECT
    "t5"."wallet",
    "t5"."address",
    "t9"."UNI_balance_raw"
  FROM (
    SELECT
      "t0"."wallet",
      "t0"."address"
    FROM "lake"."nbext"."wallets" AS "t0"
  ) AS "t5"
  LEFT OUTER JOIN (
    SELECT
      "t7"."wallet",
      "t7"."UNI_balance_raw"
    FROM (
      SELECT
        "t2"."wallet",
        TRY_CAST(ROW("t2"."hi", "t2"."mid", "t2"."lo") AS ROW("hi" DECIMAL(38, 0), "mid" DECIMAL(38, 0), "lo" DECIMAL(38, 0))) AS "UNI_balance_raw"
      FROM "lake"."nbext"."balances" AS "t2"
      WHERE
        "t2"."contract" = 1 AND "t2"."size" >= 540000000000000000
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
