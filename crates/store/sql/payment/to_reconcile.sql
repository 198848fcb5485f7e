select spillway.payments_to_reconcile() as "payments!";
