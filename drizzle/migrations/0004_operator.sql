ALTER TABLE "audit_log" DROP CONSTRAINT "audit_log_actor";--> statement-breakpoint
ALTER TABLE "sponsored_transfers" ADD COLUMN "sequence" bigint NOT NULL GENERATED ALWAYS AS IDENTITY (sequence name "sponsored_transfers_sequence_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1);--> statement-breakpoint
CREATE INDEX "sponsored_transfers_newest" ON "sponsored_transfers" USING btree ("created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "sponsored_transfers_newest_of_status" ON "sponsored_transfers" USING btree ("status","created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "audit_log_newest_of_action" ON "audit_log" USING btree ("action","sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "batches_newest_of_all" ON "batches" USING btree ("created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "contractors_newest_of_all" ON "contractors" USING btree ("created_at" DESC NULLS FIRST,"sequence" DESC NULLS FIRST) WHERE "contractors"."deleted_at" is null;--> statement-breakpoint
ALTER TABLE "audit_log" ADD CONSTRAINT "audit_log_actor" CHECK ("audit_log"."actor_kind" in ('ledger', 'idp', 'service', 'operator'));