ALTER TABLE "payouts" DROP CONSTRAINT "payouts_once";--> statement-breakpoint
DROP INDEX "contractors_invited_email";--> statement-breakpoint
DROP INDEX "contractors_invited_address";--> statement-breakpoint
DROP INDEX "contractors_linked";--> statement-breakpoint
ALTER TABLE "organisations" ADD COLUMN "registrations_asked_at" timestamp (3) with time zone;--> statement-breakpoint
CREATE INDEX "contractors_unlinked_email" ON "contractors" USING btree ("email_folded") WHERE "contractors"."deleted_at" is null and "contractors"."linked_kind" is null and "contractors"."status" <> 'inactive';--> statement-breakpoint
CREATE INDEX "contractors_unlinked_address" ON "contractors" USING btree ("address") WHERE "contractors"."deleted_at" is null and "contractors"."linked_kind" is null and "contractors"."status" <> 'inactive';--> statement-breakpoint
CREATE INDEX "contractors_waiting" ON "contractors" USING btree ("organisation","sequence") WHERE "contractors"."deleted_at" is null and "contractors"."status" in ('invited', 'onboarding') and "contractors"."address" is not null;--> statement-breakpoint
CREATE INDEX "contractors_waiting_of_all" ON "contractors" USING btree ("sequence") WHERE "contractors"."deleted_at" is null and "contractors"."status" in ('invited', 'onboarding') and "contractors"."address" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "payouts_once" ON "payouts" USING btree ("batch","contractor") WHERE "payouts"."status" <> 'canceled';--> statement-breakpoint
CREATE INDEX "contractors_linked" ON "contractors" USING btree ("linked_kind","linked_sub") WHERE "contractors"."deleted_at" is null and "contractors"."linked_kind" is not null;