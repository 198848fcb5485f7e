select max(trade_date) as "newest?" from spillway.snaptrade_activity where account_id = $1;
