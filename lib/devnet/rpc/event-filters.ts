import { StrKey, xdr } from '@stellar/stellar-sdk'
import type { EventRecord } from '../state/record.ts'
import { invalidParams, isObject } from './json-rpc.ts'

const MAX_FILTERS = 5
const MAX_CONTRACTS = 5
const MAX_TOPIC_LISTS = 5
const MAX_SEGMENTS = 4

/** One filter: every part that is there must match; several filters are alternatives. */
export interface EventFilter {
  readonly types: ReadonlySet<string>
  readonly contracts: ReadonlySet<string>
  readonly topics: readonly (readonly string[])[]
}

export function readFilters(filters: unknown): EventFilter[] {
  if (filters === undefined || filters === null) return []
  if (!Array.isArray(filters)) throw invalidParams('filters must be an array')
  if (filters.length > MAX_FILTERS) throw invalidParams('maximum 5 filters per request')
  return filters.map((filter, index) => {
    if (!isObject(filter)) throw invalidParams(`filter ${index + 1} invalid: not an object`)
    return {
      types: readTypes(filter.type),
      contracts: readContracts(filter.contractIds),
      topics: readTopics(filter.topics),
    }
  })
}

export function matches(event: EventRecord, filters: readonly EventFilter[]): boolean {
  return filters.length === 0 || filters.some((filter) => matchesOne(event, filter))
}

/** Whether any of `contracts` can be in what the filters let through: saves reading the ledgers where none is. */
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
  const isOpen = pattern.at(-1) === '**'
  const fixed = isOpen ? pattern.slice(0, -1) : pattern
  if (isOpen ? topics.length < fixed.length : topics.length !== fixed.length) return false
  return fixed.every((segment, index) => segment === '*' || segment === topics[index])
}

function readTypes(type: unknown): Set<string> {
  if (type === undefined || type === null || type === '') return new Set()
  if (typeof type !== 'string') throw invalidParams('filter type invalid')
  const types = type.split(',')
  if (types.every((one) => one === 'contract' || one === 'system')) return new Set(types)
  throw invalidParams('filter type invalid: if set, type must be either "system", "contract"')
}

function readContracts(ids: unknown): Set<string> {
  if (ids === undefined || ids === null) return new Set()
  if (!Array.isArray(ids)) throw invalidParams('contractIds must be an array')
  if (ids.length > MAX_CONTRACTS) throw invalidParams('maximum 5 contract IDs per filter')
  if (ids.every((id) => typeof id === 'string' && StrKey.isValidContract(id))) return new Set(ids)
  throw invalidParams('contract ID invalid')
}

function readTopics(lists: unknown): string[][] {
  if (lists === undefined || lists === null) return []
  if (!Array.isArray(lists)) throw invalidParams('topics must be an array')
  if (lists.length > MAX_TOPIC_LISTS) throw invalidParams('maximum 5 topics per filter')
  return lists.map(readSegments)
}

function readSegments(list: unknown): string[] {
  if (!Array.isArray(list)) throw invalidParams('topic must be an array')
  const segments = list.length - (list.at(-1) === '**' ? 1 : 0)
  if (list.length === 0) throw invalidParams('topic must have at least one segment')
  if (segments > MAX_SEGMENTS) throw invalidParams('topic cannot have more than 4 segments')
  return list.map((segment, index) => {
    if (segment === '*' || (segment === '**' && index === list.length - 1)) return segment
    if (typeof segment === 'string' && xdr.ScVal.validateXdr(segment, 'base64')) return segment
    throw invalidParams(`topic segment ${index + 1} is not a base64 ScVal`)
  })
}
