import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { BlockList, isIP, type LookupFunction } from 'node:net'

/** Resolves a host name to all its addresses. */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>

const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]

/**
 * Asks the DNS, and not the system: a server that never answers would block one of the few threads that Node reads files with. Rejects
 * if a name has no address.
 * @param servers in place of the system's
 */
export function openResolver(servers?: readonly string[]): Resolve {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  if (servers) resolver.setServers(servers)
  return async (hostname) => {
    if (hostname === 'localhost') return LOOPBACK
    const found = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
    const addresses = found.flatMap((one, index) =>
      one.status === 'fulfilled' ? one.value.map((address) => ({ address, family: index === 0 ? 4 : 6 })) : [],
    )
    if (addresses.length === 0) throw new Error(`${hostname} has no address`)
    return addresses
  }
}

/** The longest URL of an endpoint. */
export const MAX_URL = 2_000

/** Where endpoints may be. */
export interface DestinationRules {
  /** whether endpoints of this computer may be used, also without TLS: with the embedded ledger only */
  allowsLoopback: boolean
  resolve: Resolve
}

/** The IPv4 blocks that are not of the public Internet (IANA special-purpose registry, RFC 6890), or not one host of it. */
const SPECIAL_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Azure answers here on every virtual machine with what belongs to that machine.
  '168.63.129.16/32',
]

/** What is allocated for unicast (RFC 4291). All else is refused: loopback, private, link-local, multicast, mapped IPv4, NAT64. */
const UNICAST_IPV6 = '2000::/3'

/** The blocks within it that lead elsewhere: protocol assignments with Teredo, documentation, 6to4. */
const SPECIAL_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

function blocksOf(family: 'ipv4' | 'ipv6', ...blocks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const block of blocks) {
    const [network = '', prefix] = block.split('/')
    list.addSubnet(network, Number(prefix), family)
  }
  return list
}

const REFUSED_IPV4 = blocksOf('ipv4', ...SPECIAL_IPV4)
const REFUSED_IPV6 = blocksOf('ipv6', ...SPECIAL_IPV6)
const ALLOWED_IPV6 = blocksOf('ipv6', UNICAST_IPV6)
const LOOPBACK_IPV4 = blocksOf('ipv4', '127.0.0.0/8')

/** Whether an address belongs to a host of the public Internet. */
export function isPublicAddress(address: string): boolean {
  // A zone, as in fe80::1%eth0, belongs to addresses of one link only.
  if (isIP(address) === 4) return !REFUSED_IPV4.check(address)
  return (
    isIP(address) === 6 &&
    !address.includes('%') &&
    ALLOWED_IPV6.check(address, 'ipv6') &&
    !REFUSED_IPV6.check(address, 'ipv6')
  )
}

const isLoopbackAddress = (address: string) =>
  address === '::1' || (isIP(address) === 4 && LOOPBACK_IPV4.check(address))

/** The host of a URL without the brackets of an IPv6 address. */
const hostOf = ({ hostname }: URL) => hostname.replace(/^\[(.*)\]$/, '$1')

const isLoopbackHost = (host: string) => host === 'localhost' || isLoopbackAddress(host)

/** Which addresses the host of a URL may have. */
function acceptedBy({ allowsLoopback }: DestinationRules, url: URL): (address: string) => boolean {
  return allowsLoopback && isLoopbackHost(hostOf(url)) ? isLoopbackAddress : isPublicAddress
}

const NOT_PUBLIC = 'must name a host with public addresses only'

/** Why a text cannot be the URL of an endpoint, as far as the text says; undefined if it can. */
export function problemOfUrl(rules: DestinationRules, text: string): string | undefined {
  const url = URL.parse(text)
  if (!url) return 'must be an absolute URL'
  if (url.username !== '' || url.password !== '') return 'must not contain credentials'
  if (text.includes('#')) return 'must not contain a fragment'
  const host = hostOf(url)
  const mayBePlain = rules.allowsLoopback && isLoopbackHost(host)
  if (url.protocol !== 'https:' && !(mayBePlain && url.protocol === 'http:')) return 'must begin with https://'
  return isIP(host) !== 0 && !acceptedBy(rules, url)(host) ? NOT_PUBLIC : undefined
}

/**
 * Why events cannot be sent to a URL now: what its text says, or one of its addresses. A host that cannot be resolved may be one
 * tomorrow.
 */
export async function problemOfDestination(rules: DestinationRules, text: string): Promise<string | undefined> {
  const problem = problemOfUrl(rules, text)
  if (problem !== undefined) return problem
  const url = new URL(text)
  if (isIP(hostOf(url)) !== 0) return undefined
  const addresses = await rules.resolve(hostOf(url)).catch(() => [])
  return addresses.every(({ address }) => acceptedBy(rules, url)(address)) ? undefined : NOT_PUBLIC
}

/** An address that no request may be sent to. */
export class AddressRefused extends Error {}

/**
 * The lookup of a request: it resolves the host when the connection is made, and the connection is made to an address that it has
 * checked. So a name whose addresses change after any earlier check leads nowhere else (DNS rebinding).
 */
export function guardedLookup(rules: DestinationRules, url: URL): LookupFunction {
  const isAccepted = acceptedBy(rules, url)
  return (hostname, options, callback) => {
    const answer = (addresses: readonly LookupAddress[]) => {
      const [first] = addresses
      if (!first || !addresses.every(({ address }) => isAccepted(address)))
        return callback(new AddressRefused('the host has an address that is not public'), '')
      if (options.all) callback(null, [...addresses])
      else callback(null, first.address, first.family)
    }
    rules.resolve(hostname).then(answer, (error: NodeJS.ErrnoException) => callback(error, ''))
  }
}
