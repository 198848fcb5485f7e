-- Goes with the guard of this name in the programs: they archive the source of a dead letter first, in a transaction of its
-- own, and write the dead letter in a second one, which has to find the source in the archive. Workers may not read that.
select pg_temp.take_away('queue_archive_', 'perform spillway.limit_release(', $$if ids is null then
        select array_agg(a.msg_id), array_agg(a.message), array_agg(a.headers) into ids, messages, all_headers
        from pgmq.a_QUEUE a join unnest(p_ids, p_cts) w (id, ct) on a.msg_id = w.id and a.read_ct = w.ct;
      end if;
      perform spillway.limit_release($$);
select pg_temp.take_away('queue_archive_', 'ROWS 100', 'ROWS 100 SECURITY DEFINER SET search_path = pg_catalog, pg_temp');
