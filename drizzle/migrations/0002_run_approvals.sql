CREATE TABLE "run_approvals" (
	"batch" uuid PRIMARY KEY NOT NULL,
	"account" text NOT NULL,
	"manifest" text NOT NULL,
	"signatures" text[] NOT NULL,
	"signers" text[] NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "run_approvals" ADD CONSTRAINT "run_approvals_batch_batches_id_fk" FOREIGN KEY ("batch") REFERENCES "public"."batches"("id") ON DELETE cascade ON UPDATE no action;