with positions as (
  delete from spillway.snaptrade_position where account_id = $1
)
delete from spillway.snaptrade_balance where account_id = $1;
