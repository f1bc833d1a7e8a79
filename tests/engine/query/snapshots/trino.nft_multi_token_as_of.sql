WITH "matched" AS (
  SELECT
    "t20"."wallet"
  FROM (
    SELECT
      "t18"."wallet"
    FROM (
      SELECT
        "t17"."wallet",
        "t17"."from_block",
        "t17"."to_block",
        "t17"."hi",
        "t17"."mid",
        "t17"."lo",
        "t17"."size"
      FROM (
        SELECT
          "t16"."wallet",
          "t16"."from_block",
          "t16"."to_block",
          "t16"."count",
          CAST('0' AS DECIMAL(38, 0)) AS "hi",
          CAST('0' AS DECIMAL(38, 0)) AS "mid",
          CAST("t16"."count" AS DECIMAL(38, 0)) AS "lo",
          "t16"."count" AS "size"
        FROM (
          SELECT
            "t15"."wallet",
            "t15"."block" AS "from_block",
            COALESCE(
              LEAD("t15"."block") OVER (PARTITION BY "t15"."wallet" ORDER BY "t15"."block" ASC),
              4611686018427387904
            ) AS "to_block",
            SUM("t15"."change") OVER (
              PARTITION BY "t15"."wallet"
              ORDER BY "t15"."block" ASC
              ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) AS "count"
          FROM (
            SELECT
              "t14"."wallet",
              "t14"."block",
              SUM("t14"."change") AS "change"
            FROM (
              SELECT
                *
              FROM (
                SELECT
                  "t7"."block",
                  "t7"."recipient" AS "wallet",
                  "t7"."count" AS "change"
                FROM (
                  SELECT
                    *
                  FROM "lake"."nbext"."transfers" AS "t1"
                  WHERE
                    "t1"."contract" = 4 AND "t1"."hi" = 0 AND "t1"."mid" = 0
                ) AS "t7"
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
                        FROM UNNEST(SEQUENCE(1, GREATEST(CARDINALITY(ARRAY[0, 1])))) AS _u(pos)
                        CROSS JOIN UNNEST(ARRAY[0, 1]) WITH ORDINALITY AS _u_2("listed", pos_2)
                        WHERE
                          _u.pos = _u_2.pos_2
                          OR (
                            _u.pos > CARDINALITY(ARRAY[0, 1]) AND _u_2.pos_2 = CARDINALITY(ARRAY[0, 1])
                          )
                      ) AS "t4"
                    ) AS "t9"
                    WHERE
                      "t7"."lo" = "t9"."listed"
                  )
              ) AS "t12"
              UNION ALL
              SELECT
                *
              FROM (
                SELECT
                  "t7"."block",
                  "t7"."sender" AS "wallet",
                  -(
                    "t7"."count"
                  ) AS "change"
                FROM (
                  SELECT
                    *
                  FROM "lake"."nbext"."transfers" AS "t1"
                  WHERE
                    "t1"."contract" = 4 AND "t1"."hi" = 0 AND "t1"."mid" = 0
                ) AS "t7"
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
                        FROM UNNEST(SEQUENCE(1, GREATEST(CARDINALITY(ARRAY[0, 1])))) AS _u(pos)
                        CROSS JOIN UNNEST(ARRAY[0, 1]) WITH ORDINALITY AS _u_2("listed", pos_2)
                        WHERE
                          _u.pos = _u_2.pos_2
                          OR (
                            _u.pos > CARDINALITY(ARRAY[0, 1]) AND _u_2.pos_2 = CARDINALITY(ARRAY[0, 1])
                          )
                      ) AS "t4"
                    ) AS "t9"
                    WHERE
                      "t7"."lo" = "t9"."listed"
                  )
              ) AS "t13"
            ) AS "t14"
            GROUP BY
              1,
              2
          ) AS "t15"
        ) AS "t16"
      ) AS "t17"
    ) AS "t18"
    WHERE
      "t18"."from_block" <= 192 AND "t18"."to_block" > 192 AND "t18"."size" >= 1
  ) AS "t20"
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
      ) AS "t11"
      WHERE
        "t20"."wallet" = "t11"."wallet"
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
  "t10"."GAME_count",
  (
    SELECT
      COUNT(*)
    FROM "matched"
  ) AS "matched"
FROM (
  SELECT
    "t5"."wallet",
    "t5"."address",
    "t9"."GAME_count"
  FROM (
    SELECT
      "t0"."wallet",
      "t0"."address"
    FROM "lake"."nbext"."wallets" AS "t0"
  ) AS "t5"
  LEFT OUTER JOIN (
    SELECT
      "t7"."wallet",
      "t7"."GAME_count"
    FROM (
      SELECT
        "t2"."wallet",
        "t2"."size" AS "GAME_count"
      FROM "lake"."nbext"."history" AS "t2"
      WHERE
        "t2"."contract" = 4 AND "t2"."from_block" <= 192 AND "t2"."to_block" > 192
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
