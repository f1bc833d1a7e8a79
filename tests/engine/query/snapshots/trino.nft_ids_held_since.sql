WITH "matched" AS (
  WITH "t18" AS (
    SELECT
      "t12"."block",
      "t12"."sender",
      "t12"."recipient",
      LAG("t12"."recipient") OVER (
        PARTITION BY "t12"."hi", "t12"."mid", "t12"."lo"
        ORDER BY "t12"."block" ASC, "t12"."log_index" ASC
      ) AS "before",
      LEAD("t12"."block") OVER (
        PARTITION BY "t12"."hi", "t12"."mid", "t12"."lo"
        ORDER BY "t12"."block" ASC, "t12"."log_index" ASC
      ) AS "until"
    FROM (
      SELECT
        *
      FROM "lake"."nbext"."transfers" AS "t2"
      WHERE
        "t2"."contract" = 2 AND "t2"."hi" = 0 AND "t2"."mid" = 0
    ) AS "t12"
    WHERE
      EXISTS(
        SELECT
          1
        FROM (
          SELECT
            CAST("t5"."listed" AS DECIMAL(38, 0)) AS "listed"
          FROM (
            SELECT
              IF(_u.pos = _u_2.pos_2, _u_2."listed") AS "listed"
            FROM UNNEST(SEQUENCE(1, GREATEST(CARDINALITY(ARRAY[3, 6])))) AS _u(pos)
            CROSS JOIN UNNEST(ARRAY[3, 6]) WITH ORDINALITY AS _u_2("listed", pos_2)
            WHERE
              _u.pos = _u_2.pos_2
              OR (
                _u.pos > CARDINALITY(ARRAY[3, 6]) AND _u_2.pos_2 = CARDINALITY(ARRAY[3, 6])
              )
          ) AS "t5"
        ) AS "t14"
        WHERE
          "t12"."lo" = "t14"."listed"
      )
  )
  SELECT
    "t27"."wallet"
  FROM (
    SELECT
      "t20"."wallet"
    FROM (
      SELECT
        "t17"."wallet",
        SUM("t17"."count") AS "count"
      FROM (
        SELECT
          "t11"."contract",
          "t11"."id_hi",
          "t11"."id_mid",
          "t11"."id_lo",
          "t11"."wallet",
          "t11"."count"
        FROM (
          SELECT
            *
          FROM "lake"."nbext"."owners" AS "t1"
          WHERE
            "t1"."contract" = 2 AND "t1"."id_hi" = 0 AND "t1"."id_mid" = 0
        ) AS "t11"
        WHERE
          EXISTS(
            SELECT
              1
            FROM (
              SELECT
                CAST("t5"."listed" AS DECIMAL(38, 0)) AS "listed"
              FROM (
                SELECT
                  IF(_u.pos = _u_2.pos_2, _u_2."listed") AS "listed"
                FROM UNNEST(SEQUENCE(1, GREATEST(CARDINALITY(ARRAY[3, 6])))) AS _u(pos)
                CROSS JOIN UNNEST(ARRAY[3, 6]) WITH ORDINALITY AS _u_2("listed", pos_2)
                WHERE
                  _u.pos = _u_2.pos_2
                  OR (
                    _u.pos > CARDINALITY(ARRAY[3, 6]) AND _u_2.pos_2 = CARDINALITY(ARRAY[3, 6])
                  )
              ) AS "t5"
            ) AS "t14"
            WHERE
              "t11"."id_lo" = "t14"."listed"
          )
      ) AS "t17"
      GROUP BY
        1
    ) AS "t20"
    WHERE
      "t20"."count" >= 1
  ) AS "t27"
  WHERE
    (
      EXISTS(
        SELECT
          1
        FROM (
          SELECT
            "t35"."wallet"
          FROM (
            SELECT
              "t34"."wallet",
              "t34"."from_block",
              "t34"."to_block",
              "t34"."hi",
              "t34"."mid",
              "t34"."lo",
              "t34"."size"
            FROM (
              SELECT
                "t33"."wallet",
                "t33"."from_block",
                "t33"."to_block",
                "t33"."count",
                CAST('0' AS DECIMAL(38, 0)) AS "hi",
                CAST('0' AS DECIMAL(38, 0)) AS "mid",
                CAST("t33"."count" AS DECIMAL(38, 0)) AS "lo",
                "t33"."count" AS "size"
              FROM (
                SELECT
                  "t32"."wallet",
                  "t32"."block" AS "from_block",
                  COALESCE(
                    LEAD("t32"."block") OVER (PARTITION BY "t32"."wallet" ORDER BY "t32"."block" ASC),
                    4611686018427387904
                  ) AS "to_block",
                  SUM("t32"."change") OVER (
                    PARTITION BY "t32"."wallet"
                    ORDER BY "t32"."block" ASC
                    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
                  ) AS "count"
                FROM (
                  SELECT
                    "t31"."wallet",
                    "t31"."block",
                    SUM("t31"."change") AS "change"
                  FROM (
                    SELECT
                      *
                    FROM (
                      SELECT
                        *
                      FROM (
                        SELECT
                          *
                        FROM (
                          SELECT
                            "t19"."block",
                            "t19"."recipient" AS "wallet",
                            1 AS "change"
                          FROM "t18" AS "t19"
                        ) AS "t21"
                        UNION ALL
                        SELECT
                          *
                        FROM (
                          SELECT
                            "t19"."until" AS "block",
                            "t19"."recipient" AS "wallet",
                            -(
                              1
                            ) AS "change"
                          FROM "t18" AS "t19"
                          WHERE
                            "t19"."until" IS NOT NULL
                        ) AS "t22"
                      ) AS "t24"
                      UNION ALL
                      SELECT
                        *
                      FROM (
                        SELECT
                          0 AS "block",
                          "t25"."sender" AS "wallet",
                          1 AS "change"
                        FROM (
                          SELECT
                            *
                          FROM "t18" AS "t19"
                          WHERE
                            "t19"."before" IS NULL
                        ) AS "t25"
                        WHERE
                          NOT EXISTS(
                            SELECT
                              1
                            FROM (
                              SELECT
                                "t0"."wallet" AS "sender"
                              FROM "lake"."nbext"."wallets" AS "t0"
                              WHERE
                                "t0"."address" = '0x0000000000000000000000000000000000000000'
                            ) AS "t10"
                            WHERE
                              "t25"."sender" = "t10"."sender"
                          )
                      ) AS "t29"
                    ) AS "t30"
                    UNION ALL
                    SELECT
                      *
                    FROM (
                      SELECT
                        "t25"."block",
                        "t25"."sender" AS "wallet",
                        -(
                          1
                        ) AS "change"
                      FROM (
                        SELECT
                          *
                        FROM "t18" AS "t19"
                        WHERE
                          "t19"."before" IS NULL
                      ) AS "t25"
                      WHERE
                        NOT EXISTS(
                          SELECT
                            1
                          FROM (
                            SELECT
                              "t0"."wallet" AS "sender"
                            FROM "lake"."nbext"."wallets" AS "t0"
                            WHERE
                              "t0"."address" = '0x0000000000000000000000000000000000000000'
                          ) AS "t10"
                          WHERE
                            "t25"."sender" = "t10"."sender"
                        )
                    ) AS "t28"
                  ) AS "t31"
                  GROUP BY
                    1,
                    2
                ) AS "t32"
              ) AS "t33"
            ) AS "t34"
          ) AS "t35"
          WHERE
            "t35"."from_block" <= 144 AND "t35"."to_block" > 144 AND "t35"."size" >= 1
        ) AS "t37"
        WHERE
          "t27"."wallet" = "t37"."wallet"
      )
      AND NOT EXISTS(
        SELECT
          1
        FROM (
          SELECT
            "t35"."wallet"
          FROM (
            SELECT
              "t34"."wallet",
              "t34"."from_block",
              "t34"."to_block",
              "t34"."hi",
              "t34"."mid",
              "t34"."lo",
              "t34"."size"
            FROM (
              SELECT
                "t33"."wallet",
                "t33"."from_block",
                "t33"."to_block",
                "t33"."count",
                CAST('0' AS DECIMAL(38, 0)) AS "hi",
                CAST('0' AS DECIMAL(38, 0)) AS "mid",
                CAST("t33"."count" AS DECIMAL(38, 0)) AS "lo",
                "t33"."count" AS "size"
              FROM (
                SELECT
                  "t32"."wallet",
                  "t32"."block" AS "from_block",
                  COALESCE(
                    LEAD("t32"."block") OVER (PARTITION BY "t32"."wallet" ORDER BY "t32"."block" ASC),
                    4611686018427387904
                  ) AS "to_block",
                  SUM("t32"."change") OVER (
                    PARTITION BY "t32"."wallet"
                    ORDER BY "t32"."block" ASC
                    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
                  ) AS "count"
                FROM (
                  SELECT
                    "t31"."wallet",
                    "t31"."block",
                    SUM("t31"."change") AS "change"
                  FROM (
                    SELECT
                      *
                    FROM (
                      SELECT
                        *
                      FROM (
                        SELECT
                          *
                        FROM (
                          SELECT
                            "t19"."block",
                            "t19"."recipient" AS "wallet",
                            1 AS "change"
                          FROM "t18" AS "t19"
                        ) AS "t21"
                        UNION ALL
                        SELECT
                          *
                        FROM (
                          SELECT
                            "t19"."until" AS "block",
                            "t19"."recipient" AS "wallet",
                            -(
                              1
                            ) AS "change"
                          FROM "t18" AS "t19"
                          WHERE
                            "t19"."until" IS NOT NULL
                        ) AS "t22"
                      ) AS "t24"
                      UNION ALL
                      SELECT
                        *
                      FROM (
                        SELECT
                          0 AS "block",
                          "t25"."sender" AS "wallet",
                          1 AS "change"
                        FROM (
                          SELECT
                            *
                          FROM "t18" AS "t19"
                          WHERE
                            "t19"."before" IS NULL
                        ) AS "t25"
                        WHERE
                          NOT EXISTS(
                            SELECT
                              1
                            FROM (
                              SELECT
                                "t0"."wallet" AS "sender"
                              FROM "lake"."nbext"."wallets" AS "t0"
                              WHERE
                                "t0"."address" = '0x0000000000000000000000000000000000000000'
                            ) AS "t10"
                            WHERE
                              "t25"."sender" = "t10"."sender"
                          )
                      ) AS "t29"
                    ) AS "t30"
                    UNION ALL
                    SELECT
                      *
                    FROM (
                      SELECT
                        "t25"."block",
                        "t25"."sender" AS "wallet",
                        -(
                          1
                        ) AS "change"
                      FROM (
                        SELECT
                          *
                        FROM "t18" AS "t19"
                        WHERE
                          "t19"."before" IS NULL
                      ) AS "t25"
                      WHERE
                        NOT EXISTS(
                          SELECT
                            1
                          FROM (
                            SELECT
                              "t0"."wallet" AS "sender"
                            FROM "lake"."nbext"."wallets" AS "t0"
                            WHERE
                              "t0"."address" = '0x0000000000000000000000000000000000000000'
                          ) AS "t10"
                          WHERE
                            "t25"."sender" = "t10"."sender"
                        )
                    ) AS "t28"
                  ) AS "t31"
                  GROUP BY
                    1,
                    2
                ) AS "t32"
              ) AS "t33"
            ) AS "t34"
          ) AS "t35"
          WHERE
            "t35"."to_block" > 144
            AND "t35"."from_block" < "t35"."to_block"
            AND NOT (
              "t35"."size" >= 1
            )
        ) AS "t39"
        WHERE
          "t27"."wallet" = "t39"."wallet"
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
            ) AS "t8"
            WHERE
              "t3"."address" = "t8"."address"
          )
      ) AS "t16"
      WHERE
        "t27"."wallet" = "t16"."wallet"
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
  "t10"."BAYC_count",
  (
    SELECT
      COUNT(*)
    FROM "matched"
  ) AS "matched"
FROM (
  SELECT
    "t5"."wallet",
    "t5"."address",
    "t9"."BAYC_count"
  FROM (
    SELECT
      "t0"."wallet",
      "t0"."address"
    FROM "lake"."nbext"."wallets" AS "t0"
  ) AS "t5"
  LEFT OUTER JOIN (
    SELECT
      "t7"."wallet",
      "t7"."BAYC_count"
    FROM (
      SELECT
        "t2"."wallet",
        "t2"."size" AS "BAYC_count"
      FROM "lake"."nbext"."balances" AS "t2"
      WHERE
        "t2"."contract" = 2
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
