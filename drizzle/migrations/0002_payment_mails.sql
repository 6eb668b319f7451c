CREATE TABLE "mailed_payees" (
	"person" uuid PRIMARY KEY NOT NULL,
	"mailed_at" timestamp (3) with time zone,
	"is_muted" boolean DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE TABLE "payment_mails" (
	"person" uuid NOT NULL,
	"payer" uuid NOT NULL,
	"queued_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "payment_mails_person_payer_pk" PRIMARY KEY("person","payer")
);
--> statement-breakpoint
ALTER TABLE "organisations" ADD COLUMN "notify_payees" boolean DEFAULT false NOT NULL;