WITH "matched" AS (
  WITH "t14" AS (
    SELECT
      "t5"."contract",
      "t5"."block",
      "t5"."log_index",
      "t5"."sender",
      "t5"."recipient",
      "t5"."hi",
      "t5"."mid",
      "t5"."lo",
      "t5"."count"
    FROM "lake"."nbext"."transfers" AS "t5"
    WHERE
      EXISTS(
        SELECT
          1
        FROM (
          SELECT
            *
          FROM "lake"."nbext"."contracts" AS "t3"
          WHERE
            "t3"."chain_id" = 1
        ) AS "t11"
        WHERE
          "t5"."contract" = "t11"."contract"
      )
  )
  SELECT
    "t23"."wallet"
  FROM (
    SELECT
      "t21"."wallet"
    FROM (
      SELECT
        "t20"."wallet",
        MIN("t20"."block") AS "first_block",
        MAX("t20"."block") AS "last_block",
        COUNT(*) AS "transfers",
        COUNT(DISTINCT "t20"."day") AS "active_days"
      FROM (
        SELECT
          "t19"."block",
          "t19"."wallet",
          "t10"."block" AS "block_right",
          "t10"."day"
        FROM (
          SELECT
            *
          FROM (
            SELECT
              "t15"."block",
              "t15"."sender" AS "wallet"
            FROM "t14" AS "t15"
            WHERE
              "t15"."block" <= 120
          ) AS "t16"
          UNION ALL
          SELECT
            *
          FROM (
            SELECT
              "t15"."block",
              "t15"."recipient" AS "wallet"
            FROM "t14" AS "t15"
            WHERE
              "t15"."block" <= 120 AND "t15"."sender" <> "t15"."recipient"
          ) AS "t17"
        ) AS "t19"
        LEFT OUTER JOIN (
          SELECT
            "t1"."block",
            CAST(FLOOR(CAST((
              "t1"."timestamp"
            ) AS DOUBLE) / (
              86400
            )) AS BIGINT) AS "day"
          FROM "lake"."nbext"."blocks" AS "t1"
          WHERE
            "t1"."chain_id" = 1
        ) AS "t10"
          ON "t19"."block" = "t10"."block"
      ) AS "t20"
      GROUP BY
        1
    ) AS "t21"
    WHERE
      "t21"."transfers" >= 3 AND "t21"."active_days" >= 2
  ) AS "t23"
  WHERE
    NOT EXISTS(
      SELECT
        1
      FROM (
        SELECT
          "t4"."wallet"
        FROM "lake"."nbext"."wallets" AS "t4"
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
              "t4"."address" = "t8"."address"
          )
      ) AS "t13"
      WHERE
        "t23"."wallet" = "t13"."wallet"
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
  "t5"."address",
  (
    SELECT
      COUNT(*)
    FROM "matched"
  ) AS "matched"
FROM (
  SELECT
    "t4"."wallet",
    "t4"."address"
  FROM (
    SELECT
      "t0"."wallet",
      "t0"."address"
    FROM "lake"."nbext"."wallets" AS "t0"
  ) AS "t4"
  WHERE
    EXISTS(
      SELECT
        1
      FROM "returned" AS "t2"
      WHERE
        "t4"."wallet" = "t2"."wallet"
    )
) AS "t5"
ORDER BY
  "t5"."address" ASC
