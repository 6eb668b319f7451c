import { expect, test } from 'vitest'
import { missingStatements, undeclaredContractions } from '#drizzle/declared-objects.ts'

const BREAK = '\n--> statement-breakpoint\n'
const FUNCTION = 'CREATE FUNCTION "note"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;'
const TRIGGER = 'CREATE TRIGGER "noted" BEFORE INSERT ON "notes" FOR EACH ROW EXECUTE FUNCTION "note"();'
const OVERLOAD = FUNCTION.replace('"note"()', '"note"("at" text)')
const both = [FUNCTION, TRIGGER].join(BREAK)

test.each<[string, string, string[], string[]]>([
  ['nothing if the migrations create all of them', both, ['CREATE TABLE "notes" ();', both], []],
  ['nothing if a later migration replaces one', both, [both.replace('NEW', 'OLD'), FUNCTION], []],
  ['what is new', both, [FUNCTION], [TRIGGER.replace('CREATE', 'CREATE OR REPLACE')]],
  ['what has changed', both, [both.replace('NEW', 'OLD')], [FUNCTION.replace('CREATE', 'CREATE OR REPLACE')]],
  [
    'a trigger before its function, if both are gone',
    '',
    [both],
    ['DROP TRIGGER "noted" ON "notes";', 'DROP FUNCTION "note"();'],
  ],
  ['nothing if a migration dropped what is gone', FUNCTION, [both, 'DROP TRIGGER "noted" ON "notes";'], []],
  [
    'a function with other arguments beside the one that goes',
    OVERLOAD,
    [FUNCTION],
    [OVERLOAD.replace('CREATE', 'CREATE OR REPLACE'), 'DROP FUNCTION "note"();'],
  ],
])('a migration gets %s', (_, declared, migrations, missing) => {
  expect(missingStatements(declared, migrations)).toEqual(missing)
})

test.each([
  'DROP TABLE "notes";',
  'DROP INDEX "notes_at";',
  'DROP FUNCTION "note"();',
  'ALTER TABLE "notes" DROP COLUMN "at";',
  'ALTER TABLE "notes" DROP CONSTRAINT "notes_check";',
  'ALTER TABLE "notes" RENAME COLUMN "at" TO "since";',
  'ALTER TABLE "notes" RENAME TO "remarks";',
  'ALTER TABLE "notes" ALTER COLUMN "at" SET NOT NULL;',
  'ALTER TABLE "notes" ALTER COLUMN "at" SET DATA TYPE text;',
  'ALTER TABLE "notes" ADD COLUMN "by" text NOT NULL;',
])('%s must say which versions it ends', (statement) => {
  expect(undeclaredContractions(`CREATE TABLE "more" ();${BREAK}${statement}`)).toEqual([statement])
  expect(undeclaredContractions(`${statement}${BREAK}INSERT INTO "contractions" VALUES (4);`)).toEqual([])
})

test.each([
  'ALTER TABLE "notes" ADD COLUMN "by" text;',
  'ALTER TABLE "notes" ADD COLUMN "by" text DEFAULT \'x\' NOT NULL;',
  'ALTER TABLE "notes" ALTER COLUMN "by" DROP NOT NULL;',
  `ALTER TABLE "notes" DROP CONSTRAINT "notes_check";${BREAK}ALTER TABLE "notes" ADD CONSTRAINT "notes_check" CHECK (true);`,
  `DROP INDEX "notes_at";${BREAK}CREATE INDEX "notes_at" ON "notes" ("at");`,
])('%s disturbs no older version', (statement) => {
  expect(undeclaredContractions(statement)).toEqual([])
})
