import { StrKey, xdr } from '@stellar/stellar-sdk'
import type { EventRecord } from '../state/record.ts'
import { invalidParams, isObject, type Params, RpcError, wrongType } from './json-rpc.ts'

const MAX_FILTERS = 5
const MAX_CONTRACTS = 5
const MAX_TOPICS = 5
const MAX_SEGMENTS = 4

/** Wildcards: for one segment, and for any number of segments at the end. */
const ANY = '*'
const REST = '**'

/** One filter: every part must match; several filters are alternatives. */
interface EventFilter {
  readonly types: ReadonlySet<string>
  readonly contracts: ReadonlySet<string>
  readonly topics: readonly (readonly string[])[]
}

/** @throws -32602 */
export function readFilters(filters: unknown): EventFilter[] {
  const requested = readList(filters, 'filters', '[]protocol.EventFilter')
  if (requested.length > MAX_FILTERS) throw invalidParams('maximum 5 filters per request')
  return requested.map((filter, index) => {
    if (!isObject(filter)) throw wrongType(filter, 'GetEventsRequest.filters', 'protocol.EventFilter')
    const { types, contracts, topics } = readParts(filter)
    const fault = partsFault(types, contracts, topics)
    if (fault !== undefined) throw invalidParams(`filter ${index + 1} invalid: ${fault}`)
    return { types: new Set(types), contracts: new Set(contracts), topics }
  })
}

export function matches(event: EventRecord, filters: readonly EventFilter[]): boolean {
  return filters.length === 0 || filters.some((filter) => matchesOne(event, filter))
}

/** Whether the filters can match an event of these contracts. If not, the ledger needn't be read. */
export function concerns(filters: readonly EventFilter[], contracts: readonly string[]): boolean {
  return (
    filters.length === 0 ||
    filters.some(
      (filter) => filter.contracts.size === 0 || contracts.some((contract) => filter.contracts.has(contract)),
    )
  )
}

function matchesOne(event: EventRecord, { types, contracts, topics }: EventFilter): boolean {
  if (types.size > 0 && !types.has(event.type)) return false
  if (contracts.size > 0 && !contracts.has(event.contractId)) return false
  return topics.length === 0 || topics.some((pattern) => matchesTopics(event.topic, pattern))
}

function matchesTopics(topics: readonly string[], pattern: readonly string[]): boolean {
  const isOpen = pattern.at(-1) === REST
  const fixed = isOpen ? pattern.slice(0, -1) : pattern
  if (isOpen ? topics.length < fixed.length : topics.length !== fixed.length) return false
  return fixed.every((segment, index) => segment === ANY || segment === topics[index])
}

/** Rejects wrong types before any other error. */
function readParts({ type, contractIds, topics }: Params) {
  const types = type ?? ''
  if (typeof types !== 'string') throw wrongType(types, 'GetEventsRequest.filters.type', 'string')
  return {
    types: types === '' ? [] : types.split(','),
    contracts: readList(contractIds, 'filters.contractIds', '[]string').map((id) =>
      readText(id, 'filters.contractIds'),
    ),
    topics: readList(topics, 'filters.topics', '[]protocol.TopicFilter').map((topic) =>
      readList(topic, 'filters.topics', 'protocol.TopicFilter').map(readSegment),
    ),
  }
}

function readList(value: unknown, field: string, type: string): unknown[] {
  const list = value ?? []
  if (!Array.isArray(list)) throw wrongType(list, `GetEventsRequest.${field}`, type)
  return list
}

function readText(value: unknown, field: string): string {
  if (typeof value !== 'string') throw wrongType(value, `GetEventsRequest.${field}`, 'string')
  return value
}

function readSegment(value: unknown): string {
  const segment = readText(value, 'filters.topics')
  if (segment === ANY || segment === REST || xdr.ScVal.validateXdr(segment, 'base64')) return segment
  throw new RpcError(-32602, 'invalid parameters', `segment "${segment}" is not a base64 ScVal`)
}

function partsFault(types: string[], contracts: string[], topics: string[][]): string | undefined {
  if (!types.every((type) => type === 'contract' || type === 'system')) {
    return "filter type invalid: if set, type must be either 'system' or 'contract'"
  }
  if (contracts.length > MAX_CONTRACTS) return 'maximum 5 contract IDs per filter'
  if (topics.length > MAX_TOPICS) return 'maximum 5 topics per filter'
  const unknown = contracts.findIndex((id) => !StrKey.isValidContract(id))
  if (unknown >= 0) return `contract ID ${unknown + 1} invalid`
  const faults = topics.map((topic, index) => [index + 1, topicFault(topic)] as const)
  const [place, fault] = faults.find(([, text]) => text !== undefined) ?? []
  return fault === undefined ? undefined : `topic ${place} invalid: ${fault}`
}

function topicFault(topic: readonly string[]): string | undefined {
  if (topic.length === 0) return 'topic must have at least 1 segment'
  const segments = topic.at(-1) === REST ? topic.slice(0, -1) : topic
  const early = segments.indexOf(REST)
  if (early >= 0) return `segment ${early + 1} invalid: wildcard '**' is only allowed as the last segment`
  return segments.length > MAX_SEGMENTS ? 'topic cannot have more than 4 segments' : undefined
}
