WITH "matched" AS (
  WITH "t14" AS (
    SELECT
      "t9"."block",
      "t9"."sender",
      "t9"."recipient",
      LAG("t9"."recipient") OVER (
        PARTITION BY "t9"."hi", "t9"."mid", "t9"."lo"
        ORDER BY "t9"."block" ASC, "t9"."log_index" ASC
      ) AS "before",
      LEAD("t9"."block") OVER (
        PARTITION BY "t9"."hi", "t9"."mid", "t9"."lo"
        ORDER BY "t9"."block" ASC, "t9"."log_index" ASC
      ) AS "until"
    FROM (
      SELECT
        *
      FROM "lake"."nbext"."transfers" AS "t1"
      WHERE
        "t1"."contract" = 2 AND "t1"."hi" = 0 AND "t1"."mid" = 0
    ) AS "t9"
    WHERE
      EXISTS(
        SELECT
          1
        FROM (
          SELECT
            CAST("t4"."listed" AS DECIMAL(38, 0)) AS "listed"
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
          ) AS "t4"
        ) AS "t11"
        WHERE
          "t9"."lo" = "t11"."listed"
      )
  )
  SELECT
    "t31"."wallet"
  FROM (
    SELECT
      "t28"."wallet"
    FROM (
      SELECT
        "t27"."wallet",
        "t27"."from_block",
        "t27"."to_block",
        "t27"."hi",
        "t27"."mid",
        "t27"."lo",
        "t27"."size"
      FROM (
        SELECT
          "t26"."wallet",
          "t26"."from_block",
          "t26"."to_block",
          "t26"."count",
          CAST('0' AS DECIMAL(38, 0)) AS "hi",
          CAST('0' AS DECIMAL(38, 0)) AS "mid",
          CAST("t26"."count" AS DECIMAL(38, 0)) AS "lo",
          "t26"."count" AS "size"
        FROM (
          SELECT
            "t25"."wallet",
            "t25"."block" AS "from_block",
            COALESCE(
              LEAD("t25"."block") OVER (PARTITION BY "t25"."wallet" ORDER BY "t25"."block" ASC),
              4611686018427387904
            ) AS "to_block",
            SUM("t25"."change") OVER (
              PARTITION BY "t25"."wallet"
              ORDER BY "t25"."block" ASC
              ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) AS "count"
          FROM (
            SELECT
              "t24"."wallet",
              "t24"."block",
              SUM("t24"."change") AS "change"
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
                      "t15"."block",
                      "t15"."recipient" AS "wallet",
                      1 AS "change"
                    FROM "t14" AS "t15"
                  ) AS "t16"
                  UNION ALL
                  SELECT
                    *
                  FROM (
                    SELECT
                      "t15"."until" AS "block",
                      "t15"."recipient" AS "wallet",
                      -(
                        1
                      ) AS "change"
                    FROM "t14" AS "t15"
                    WHERE
                      "t15"."until" IS NOT NULL
                  ) AS "t17"
                ) AS "t19"
                UNION ALL
                SELECT
                  *
                FROM (
                  SELECT
                    0 AS "block",
                    "t20"."sender" AS "wallet",
                    1 AS "change"
                  FROM (
                    SELECT
                      *
                    FROM "t14" AS "t15"
                    WHERE
                      "t15"."before" IS NULL
                  ) AS "t20"
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
                      ) AS "t8"
                      WHERE
                        "t20"."sender" = "t8"."sender"
                    )
                ) AS "t22"
              ) AS "t23"
              UNION ALL
              SELECT
                *
              FROM (
                SELECT
                  "t20"."block",
                  "t20"."sender" AS "wallet",
                  -(
                    1
                  ) AS "change"
                FROM (
                  SELECT
                    *
                  FROM "t14" AS "t15"
                  WHERE
                    "t15"."before" IS NULL
                ) AS "t20"
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
                    ) AS "t8"
                    WHERE
                      "t20"."sender" = "t8"."sender"
                  )
              ) AS "t21"
            ) AS "t24"
            GROUP BY
              1,
              2
          ) AS "t25"
        ) AS "t26"
      ) AS "t27"
    ) AS "t28"
    WHERE
      "t28"."to_block" = 4611686018427387904 AND "t28"."size" >= 1
  ) AS "t31"
  WHERE
    (
      EXISTS(
        SELECT
          1
        FROM (
          SELECT
            "t28"."wallet"
          FROM (
            SELECT
              "t27"."wallet",
              "t27"."from_block",
              "t27"."to_block",
              "t27"."hi",
              "t27"."mid",
              "t27"."lo",
              "t27"."size"
            FROM (
              SELECT
                "t26"."wallet",
                "t26"."from_block",
                "t26"."to_block",
                "t26"."count",
                CAST('0' AS DECIMAL(38, 0)) AS "hi",
                CAST('0' AS DECIMAL(38, 0)) AS "mid",
                CAST("t26"."count" AS DECIMAL(38, 0)) AS "lo",
                "t26"."count" AS "size"
              FROM (
                SELECT
                  "t25"."wallet",
                  "t25"."block" AS "from_block",
                  COALESCE(
                    LEAD("t25"."block") OVER (PARTITION BY "t25"."wallet" ORDER BY "t25"."block" ASC),
                    4611686018427387904
                  ) AS "to_block",
                  SUM("t25"."change") OVER (
                    PARTITION BY "t25"."wallet"
                    ORDER BY "t25"."block" ASC
                    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
                  ) AS "count"
                FROM (
                  SELECT
                    "t24"."wallet",
                    "t24"."block",
                    SUM("t24"."change") AS "change"
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
                            "t15"."block",
                            "t15"."recipient" AS "wallet",
                            1 AS "change"
                          FROM "t14" AS "t15"
                        ) AS "t16"
                        UNION ALL
                        SELECT
                          *
                        FROM (
                          SELECT
                            "t15"."until" AS "block",
                            "t15"."recipient" AS "wallet",
                            -(
                              1
                            ) AS "change"
                          FROM "t14" AS "t15"
                          WHERE
                            "t15"."until" IS NOT NULL
                        ) AS "t17"
                      ) AS "t19"
                      UNION ALL
                      SELECT
                        *
                      FROM (
                        SELECT
                          0 AS "block",
                          "t20"."sender" AS "wallet",
                          1 AS "change"
                        FROM (
                          SELECT
                            *
                          FROM "t14" AS "t15"
                          WHERE
                            "t15"."before" IS NULL
                        ) AS "t20"
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
                            ) AS "t8"
                            WHERE
                              "t20"."sender" = "t8"."sender"
                          )
                      ) AS "t22"
                    ) AS "t23"
                    UNION ALL
                    SELECT
                      *
                    FROM (
                      SELECT
                        "t20"."block",
                        "t20"."sender" AS "wallet",
                        -(
                          1
                        ) AS "change"
                      FROM (
                        SELECT
                          *
                        FROM "t14" AS "t15"
                        WHERE
                          "t15"."before" IS NULL
                      ) AS "t20"
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
                          ) AS "t8"
                          WHERE
                            "t20"."sender" = "t8"."sender"
                        )
                    ) AS "t21"
                  ) AS "t24"
                  GROUP BY
                    1,
                    2
                ) AS "t25"
              ) AS "t26"
            ) AS "t27"
          ) AS "t28"
          WHERE
            "t28"."from_block" <= 144 AND "t28"."to_block" > 144 AND "t28"."size" >= 1
        ) AS "t33"
        WHERE
          "t31"."wallet" = "t33"."wallet"
      )
      AND NOT EXISTS(
        SELECT
          1
        FROM (
          SELECT
            "t28"."wallet"
          FROM (
            SELECT
              "t27"."wallet",
              "t27"."from_block",
              "t27"."to_block",
              "t27"."hi",
              "t27"."mid",
              "t27"."lo",
              "t27"."size"
            FROM (
              SELECT
                "t26"."wallet",
                "t26"."from_block",
                "t26"."to_block",
                "t26"."count",
                CAST('0' AS DECIMAL(38, 0)) AS "hi",
                CAST('0' AS DECIMAL(38, 0)) AS "mid",
                CAST("t26"."count" AS DECIMAL(38, 0)) AS "lo",
                "t26"."count" AS "size"
              FROM (
                SELECT
                  "t25"."wallet",
                  "t25"."block" AS "from_block",
                  COALESCE(
                    LEAD("t25"."block") OVER (PARTITION BY "t25"."wallet" ORDER BY "t25"."block" ASC),
                    4611686018427387904
                  ) AS "to_block",
                  SUM("t25"."change") OVER (
                    PARTITION BY "t25"."wallet"
                    ORDER BY "t25"."block" ASC
                    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
                  ) AS "count"
                FROM (
                  SELECT
                    "t24"."wallet",
                    "t24"."block",
                    SUM("t24"."change") AS "change"
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
                            "t15"."block",
                            "t15"."recipient" AS "wallet",
                            1 AS "change"
                          FROM "t14" AS "t15"
                        ) AS "t16"
                        UNION ALL
                        SELECT
                          *
                        FROM (
                          SELECT
                            "t15"."until" AS "block",
                            "t15"."recipient" AS "wallet",
                            -(
                              1
                            ) AS "change"
                          FROM "t14" AS "t15"
                          WHERE
                            "t15"."until" IS NOT NULL
                        ) AS "t17"
                      ) AS "t19"
                      UNION ALL
                      SELECT
                        *
                      FROM (
                        SELECT
                          0 AS "block",
                          "t20"."sender" AS "wallet",
                          1 AS "change"
                        FROM (
                          SELECT
                            *
                          FROM "t14" AS "t15"
                          WHERE
                            "t15"."before" IS NULL
                        ) AS "t20"
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
                            ) AS "t8"
                            WHERE
                              "t20"."sender" = "t8"."sender"
                          )
                      ) AS "t22"
                    ) AS "t23"
                    UNION ALL
                    SELECT
                      *
                    FROM (
                      SELECT
                        "t20"."block",
                        "t20"."sender" AS "wallet",
                        -(
                          1
                        ) AS "change"
                      FROM (
                        SELECT
                          *
                        FROM "t14" AS "t15"
                        WHERE
                          "t15"."before" IS NULL
                      ) AS "t20"
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
                          ) AS "t8"
                          WHERE
                            "t20"."sender" = "t8"."sender"
                        )
                    ) AS "t21"
                  ) AS "t24"
                  GROUP BY
                    1,
                    2
                ) AS "t25"
              ) AS "t26"
            ) AS "t27"
          ) AS "t28"
          WHERE
            "t28"."to_block" > 144
            AND "t28"."from_block" < "t28"."to_block"
            AND NOT (
              "t28"."size" >= 1
            )
        ) AS "t34"
        WHERE
          "t31"."wallet" = "t34"."wallet"
      )
    )
    AND NOT EXISTS(
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
            ) AS "t6"
            WHERE
              "t2"."address" = "t6"."address"
          )
      ) AS "t13"
      WHERE
        "t31"."wallet" = "t13"."wallet"
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
