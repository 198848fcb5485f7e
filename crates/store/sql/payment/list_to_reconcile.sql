select p.tenant, p.payment_id, p.conflict as "conflict!", p.applied_seq as facts, p.changed_at
from spillway.payment p where p.state = 'manual_reconcile' order by p.changed_at limit $1;
