import type { ReactNode } from 'react'
import type { FilterChecks, Filters } from '#lib/dashboard/filters.ts'
import type { ListContext, RecordList } from '#lib/dashboard/list.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Service } from '#lib/server/services.ts'
import type { FrameProps } from './frame.tsx'
import { addressOf, type Query } from './query.ts'
import type { Column } from './table.tsx'

/** The orders of a list, each with its label. The first is the usual one. */
export type Sorts = readonly (readonly [value: string, word: string])[]

export const BY_TIME = [
  ['', 'Newest'],
  ['oldest', 'Oldest'],
] as const satisfies Sorts

/**
 * How a list is shown: its page, its CSV file and the links between them. Page and file have the same records. The rows of
 * the page may have more than those of the file, which `describe` adds.
 */
export interface ListDisplay<Checks extends FilterChecks, Row, Shown extends Row = Row> {
  here: NonNullable<FrameProps['here']>
  title: string
  records: RecordList<Checks, Row>
  /** the noun for one record, and its plural, which also names the file */
  nouns: readonly [one: string, many: string]
  /** the name of the file without the day and the extension, if it is not the plural */
  file?: string
  /** by default newest or oldest first, if the list can be sorted */
  sorts?: Sorts
  columns: readonly Column<Shown, Row>[]
  describe?: (db: Database, rows: Row[]) => Promise<Shown[]>
  /** further fields of the filter form */
  fields?: (filters: Filters<Checks>) => ReactNode
  /** further files with records of the same filters, and what they contain */
  moreFiles?: (filters: Filters<Checks>) => ListFile[]
  /** shown between the title and the list */
  before?: (db: Database, service: Service) => Promise<ReactNode>
  /** the text for a list without any record, with the next step */
  empty: (settings: Service['settings']) => { title: string; children: ReactNode }
  /** whether it is one tab of another list's page */
  isOneTab?: boolean
}

type FileSource = Pick<ListDisplay<FilterChecks, unknown>, 'nouns' | 'file'>

/** A link to the file of a list: what it contains. */
interface ListFile {
  list: FileSource
  of: string
}

export const fileNameOf = ({ nouns, file = nouns[1] }: FileSource): string => file

/** The file of a list with the records of the same filters, which has no order. */
export const fileAddress = (list: FileSource, filters: Query) =>
  addressOf(`/${fileNameOf(list)}.csv`, { ...filters, sort: '' })

export const listContext = (db: Database, { settings, now }: Pick<Service, 'settings' | 'now'>): ListContext => ({
  db,
  now: now(),
  faucet: settings.faucet?.keypair.publicKey(),
})
