WITH "matched" AS (
  SELECT
    "t6"."wallet"
  FROM (
    SELECT
      "t0"."wallet"
    FROM "lake"."nbext"."balances" AS "t0"
    WHERE
      "t0"."contract" = 0 AND "t0"."size" >= 1
  ) AS "t6"
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
      ) AS "t8"
      WHERE
        "t6"."wallet" = "t8"."wallet"
    )
), "returned" AS (
  SELECT
    "t10"."wallet"
  FROM (
    SELECT
      "t3"."wallet",
      "t9"."wallet" AS "wallet_right",
      "t9"."fact"
    FROM "matched" AS "t3"
    LEFT OUTER JOIN (
      SELECT
        "t6"."wallet",
        "t7"."timestamp" AS "fact"
      FROM (
        SELECT
          "t1"."wallet",
          "t1"."last_block" AS "block"
        FROM "lake"."nbext"."activity" AS "t1"
        WHERE
          "t1"."chain_id" = 1
      ) AS "t6"
      INNER JOIN (
        SELECT
          *
        FROM "lake"."nbext"."blocks" AS "t2"
        WHERE
          "t2"."chain_id" = 1
      ) AS "t7"
        ON "t6"."block" = "t7"."block"
    ) AS "t9"
      ON "t3"."wallet" = "t9"."wallet"
  ) AS "t10"
  ORDER BY
    "t10"."fact" DESC,
    "t10"."wallet" ASC
  LIMIT 100
)
SELECT
  *,
  (
    SELECT
      COUNT(*)
    FROM "matched"
  ) AS "matched"
FROM (
  SELECT
    "t34"."address",
    "t34"."USDC_balance_raw",
    "t34"."lastSeen",
    "t34"."firstSeen",
    "t34"."transfers"
  FROM (
    SELECT
      "t7"."wallet",
      "t7"."address",
      "t24"."USDC_balance_raw",
      "t32"."lastSeen",
      "t33"."firstSeen",
      "t25"."transfers"
    FROM (
      SELECT
        "t0"."wallet",
        "t0"."address"
      FROM "lake"."nbext"."wallets" AS "t0"
    ) AS "t7"
    LEFT OUTER JOIN (
      SELECT
        "t14"."wallet",
        "t14"."USDC_balance_raw"
      FROM (
        SELECT
          "t2"."wallet",
          TRY_CAST(ROW("t2"."hi", "t2"."mid", "t2"."lo") AS ROW("hi" DECIMAL(38, 0), "mid" DECIMAL(38, 0), "lo" DECIMAL(38, 0))) AS "USDC_balance_raw"
        FROM "lake"."nbext"."balances" AS "t2"
        WHERE
          "t2"."contract" = 0 AND "t2"."size" >= 1
      ) AS "t14"
      WHERE
        EXISTS(
          SELECT
            1
          FROM "returned" AS "t5"
          WHERE
            "t14"."wallet" = "t5"."wallet"
        )
    ) AS "t24"
      ON "t7"."wallet" = "t24"."wallet"
    LEFT OUTER JOIN (
      SELECT
        "t28"."wallet",
        "t28"."lastSeen"
      FROM (
        SELECT
          "t22"."wallet",
          TRY_CAST(ROW("t22"."fact") AS ROW("seconds" BIGINT)) AS "lastSeen"
        FROM (
          SELECT
            "t16"."wallet",
            "t18"."timestamp" AS "fact"
          FROM (
            SELECT
              "t3"."wallet",
              "t3"."last_block" AS "block"
            FROM "lake"."nbext"."activity" AS "t3"
            WHERE
              "t3"."chain_id" = 1
          ) AS "t16"
          INNER JOIN (
            SELECT
              *
            FROM "lake"."nbext"."blocks" AS "t4"
            WHERE
              "t4"."chain_id" = 1
          ) AS "t18"
            ON "t16"."block" = "t18"."block"
        ) AS "t22"
      ) AS "t28"
      WHERE
        EXISTS(
          SELECT
            1
          FROM "returned" AS "t5"
          WHERE
            "t28"."wallet" = "t5"."wallet"
        )
    ) AS "t32"
      ON "t7"."wallet" = "t32"."wallet"
    LEFT OUTER JOIN (
      SELECT
        "t29"."wallet",
        "t29"."firstSeen"
      FROM (
        SELECT
          "t23"."wallet",
          TRY_CAST(ROW("t23"."fact") AS ROW("seconds" BIGINT)) AS "firstSeen"
        FROM (
          SELECT
            "t17"."wallet",
            "t19"."timestamp" AS "fact"
          FROM (
            SELECT
              "t3"."wallet",
              "t3"."first_block" AS "block"
            FROM "lake"."nbext"."activity" AS "t3"
            WHERE
              "t3"."chain_id" = 1
          ) AS "t17"
          INNER JOIN (
            SELECT
              *
            FROM "lake"."nbext"."blocks" AS "t4"
            WHERE
              "t4"."chain_id" = 1
          ) AS "t19"
            ON "t17"."block" = "t19"."block"
        ) AS "t23"
      ) AS "t29"
      WHERE
        EXISTS(
          SELECT
            1
          FROM "returned" AS "t5"
          WHERE
            "t29"."wallet" = "t5"."wallet"
        )
    ) AS "t33"
      ON "t7"."wallet" = "t33"."wallet"
    LEFT OUTER JOIN (
      SELECT
        "t15"."wallet",
        "t15"."transfers"
      FROM (
        SELECT
          "t3"."wallet",
          "t3"."transfers"
        FROM "lake"."nbext"."activity" AS "t3"
        WHERE
          "t3"."chain_id" = 1
      ) AS "t15"
      WHERE
        EXISTS(
          SELECT
            1
          FROM "returned" AS "t5"
          WHERE
            "t15"."wallet" = "t5"."wallet"
        )
    ) AS "t25"
      ON "t7"."wallet" = "t25"."wallet"
    WHERE
      EXISTS(
        SELECT
          1
        FROM "returned" AS "t5"
        WHERE
          "t7"."wallet" = "t5"."wallet"
      )
  ) AS "t34"
) AS "t35"
ORDER BY
  "t35"."address" ASC
