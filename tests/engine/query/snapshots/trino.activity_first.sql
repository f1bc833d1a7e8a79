WITH "matched" AS (
  SELECT
    "t6"."wallet"
  FROM (
    SELECT
      "t0"."wallet"
    FROM "lake"."nbext"."activity" AS "t0"
    WHERE
      "t0"."chain_id" = 1 AND "t0"."first_block" >= 24 AND "t0"."first_block" <= 48
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
