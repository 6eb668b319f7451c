import type { ReactNode } from 'react'
import type { Spending } from '#lib/dashboard/spending.ts'
import type { Readiness } from '#lib/server/readiness.ts'
import type { VaultReading } from '#lib/server/vault-reading.ts'
import { groupDigits, readable, xlm } from '#lib/text/figures.ts'
import { parseUnits } from '#lib/text/money.ts'
import type { QuotaLimits } from '#lib/transfers/quota.ts'
import { Address } from '../hash.tsx'
import { RecordLink } from '../record-links.tsx'

interface SpendingCardsProps {
  spending: Spending | undefined
  vault: VaultReading
  ready: Readiness
  limits: QuotaLimits | undefined
  network: string
}

/** The sponsor's balance and spending, the share of today's quotas that is used, and the vault's balance. */
export function SpendingCards({ spending, vault, ready, limits, network }: SpendingCardsProps) {
  return (
    <div className="grid gap-4 md:grid-cols-3">
      {spending && limits ? (
        <>
          <BalanceCard spending={spending} ready={ready} network={network} />
          <BudgetCard spending={spending} limits={limits} network={network} />
        </>
      ) : (
        <Card title="Sponsor" figure="Off">
          <p>No fees are paid: there is no sponsor key.</p>
        </Card>
      )}
      <VaultCard vault={vault} network={network} />
    </div>
  )
}

type CardProps<Name extends keyof SpendingCardsProps> = {
  [Of in Name | 'network']: NonNullable<SpendingCardsProps[Of]>
}

function BalanceCard({ spending: { floatHeld, spentInDay }, ready, network }: CardProps<'spending' | 'ready'>) {
  const { address, availableXlm } = ready.sponsor
  const balance = typeof availableXlm === 'string' ? parseUnits(availableXlm) : undefined
  return (
    <Card title="Sponsor’s balance" figure={balance === undefined ? '–' : xlm(balance, 2)} unit="XLM">
      <p>
        {balance === undefined ? 'The ledger is unavailable. ' : `Float ${xlm(balance - floatHeld, 2)} XLM, `}
        {xlm(floatHeld, 4)} XLM reserved for open bids
      </p>
      <p>{xlm(spentInDay, 4)} XLM charged in the last 24 hours</p>
      {typeof address === 'string' && (
        <p>
          <Address value={address} network={network} />
        </p>
      )}
    </Card>
  )
}

function BudgetCard({ spending: { everybody, busiest }, limits, network }: CardProps<'spending' | 'limits'>) {
  const used = everybody.used + everybody.held
  const others = busiest.reduce((left, { count }) => left - count, everybody.count)
  return (
    <Card title="Used of today’s budget" figure={xlm(used, 4)} unit={`of ${xlm(limits.dailyBudget, 2)} XLM`}>
      <Meter label="Daily budget" part={used} whole={limits.dailyBudget} />
      <p>
        {groupDigits(everybody.count)} {everybody.count === 1 ? 'transfer' : 'transfers'} today
      </p>
      {busiest.length > 0 && (
        <ul aria-label="Busiest accounts">
          {busiest.map(({ account, count, organisation }) => (
            <li key={account} className="flex justify-between gap-3">
              {organisation ? (
                <RecordLink type="organisation" {...organisation} />
              ) : (
                <Address value={account} network={network} />
              )}
              <span className="shrink-0 text-faint">
                {groupDigits(count)} of {groupDigits(limits.transfersPerAccount)}
              </span>
            </li>
          ))}
          {others > 0 && (
            <li className="flex justify-between gap-3">
              Other accounts <span className="text-faint">{groupDigits(others)}</span>
            </li>
          )}
        </ul>
      )}
    </Card>
  )
}

function VaultCard({ vault, network }: { vault: VaultReading; network: string }) {
  if (vault === 'none') {
    return (
      <Card title="Vault" figure="None">
        <p>Neither a token nor a bridge vault is configured.</p>
      </Card>
    )
  }
  return (
    <Card title="Vault balance" figure={vault ? readable(vault.held, 2) : '–'} unit="USDC">
      {vault ? (
        <>
          <p>Backs all confidential balances; public by construction.</p>
          <p>
            <Address value={vault.vault} network={network} />
          </p>
        </>
      ) : (
        <p>The ledger is unavailable.</p>
      )}
    </Card>
  )
}

interface FigureProps {
  title: string
  figure: ReactNode
  unit?: string
  children: ReactNode
}

/** One large figure with its label and details. */
function Card({ title, figure, unit, children }: FigureProps) {
  return (
    <section className="flex flex-col rounded-lg border border-line bg-surface p-4 shadow-card sm:p-5">
      <h2 className="text-xs text-faint">{title}</h2>
      <p className="mt-1.5 text-2xl font-semibold tracking-tight">
        {figure}
        {unit && <span className="ml-1.5 text-sm font-normal tracking-normal text-faint">{unit}</span>}
      </p>
      <div className="mt-2 space-y-1 text-[0.8125rem] text-soft">{children}</div>
    </section>
  )
}

/** How much of a limit is used. The colour changes when it is nearly full, and so does the text. */
function Meter({ label, part, whole }: { label: string; part: bigint; whole: bigint }) {
  const percent = whole === 0n ? 100 : Number((part * 1000n) / whole) / 10
  return (
    <svg
      role="img"
      aria-label={`${label}: ${percent} % used`}
      viewBox="0 0 100 6"
      preserveAspectRatio="none"
      className="my-2 block h-1.5 w-full rounded-full bg-line"
    >
      <rect
        width={part > 0n ? Math.min(100, Math.max(0.75, percent)) : 0}
        height="6"
        fill={percent >= 80 ? 'var(--busy-fill)' : 'var(--accent)'}
      />
    </svg>
  )
}
