CREATE TABLE "events" (
	"number" bigint PRIMARY KEY NOT NULL,
	"token" text NOT NULL,
	"entry" bigint NOT NULL,
	"organisation" uuid NOT NULL,
	"payee" uuid,
	"type" text NOT NULL,
	"data" jsonb NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "events_entry_unique" UNIQUE("entry")
);
--> statement-breakpoint
CREATE INDEX "events_of_organisation" ON "events" USING btree ("organisation","number");--> statement-breakpoint
CREATE INDEX "events_of_payee" ON "events" USING btree ("payee","number");--> statement-breakpoint
-- Events begin with this version: the entries from before have no events for what programs expect, such as new payouts.
INSERT INTO "chores" ("name", "begun_at", "after") SELECT 'events', now(), coalesce(max("sequence"), 0) FROM "audit_log";
