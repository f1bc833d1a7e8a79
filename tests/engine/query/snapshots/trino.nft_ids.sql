WITH "matched" AS (
  SELECT
    "t15"."wallet"
  FROM (
    SELECT
      "t13"."wallet"
    FROM (
      SELECT
        "t12"."wallet",
        SUM("t12"."count") AS "count"
      FROM (
        SELECT
          "t7"."contract",
          "t7"."id_hi",
          "t7"."id_mid",
          "t7"."id_lo",
          "t7"."wallet",
          "t7"."count"
        FROM (
          SELECT
            *
          FROM "lake"."nbext"."owners" AS "t1"
          WHERE
            "t1"."contract" = 2 AND "t1"."id_hi" = 0 AND "t1"."id_mid" = 0
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
                FROM UNNEST(SEQUENCE(1, GREATEST(CARDINALITY(ARRAY[3, 6, 9])))) AS _u(pos)
                CROSS JOIN UNNEST(ARRAY[3, 6, 9]) WITH ORDINALITY AS _u_2("listed", pos_2)
                WHERE
                  _u.pos = _u_2.pos_2
                  OR (
                    _u.pos > CARDINALITY(ARRAY[3, 6, 9]) AND _u_2.pos_2 = CARDINALITY(ARRAY[3, 6, 9])
                  )
              ) AS "t4"
            ) AS "t9"
            WHERE
              "t7"."id_lo" = "t9"."listed"
          )
      ) AS "t12"
      GROUP BY
        1
    ) AS "t13"
    WHERE
      "t13"."count" >= 1
  ) AS "t15"
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
            ) AS "t6"
            WHERE
              "t2"."address" = "t6"."address"
          )
      ) AS "t11"
      WHERE
        "t15"."wallet" = "t11"."wallet"
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
