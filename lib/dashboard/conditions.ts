import { MIN_HISTORY_LEFT } from '#lib/archive/ranges.ts'

/** When Prometheus alerts on a condition. */
interface Alert {
  name: `Payroll${string}`
  /** PromQL over the metrics of GET /api/metrics, scraped as the job `payroll` */
  expr: string
  for: `${number}${'m' | 'h'}`
  /** `page`: act now; `ticket`: act within a day */
  severity: 'page' | 'ticket'
  summary: string
}

/** How the overview shows a condition. */
interface Notice {
  level: 'bad' | 'late'
  /** undefined if each item words it with the names and counts of its record */
  what?: string
}

interface Condition {
  /** undefined for a condition that only a series of metrics shows */
  notice?: Notice
  /** undefined for a condition that only the overview shows */
  alert?: Alert
}

/** A batch without progress for this long has stalled. */
export const BATCH_STALLED_AFTER_SECONDS = 30 * 60
/** A job without progress for this long has stalled. */
export const JOB_STALLED_AFTER_SECONDS = 10 * 60
/** An open transfer of this age is overdue: the longest maxTime is 330 s. */
export const TRANSFER_OVERDUE_AFTER_SECONDS = 6 * 60
/** The sponsor's balance should last this many days. */
export const SPONSOR_DAYS = 7
/** The daily budget is nearly used from this percentage on. */
export const BUDGET_PERCENT = 80

/**
 * Every condition that may need attention, once: the overview lists those with a notice, and `npm run docs` writes
 * docs/alerts.yml from those with an alert.
 */
export const CONDITIONS = {
  down: {
    alert: {
      name: 'PayrollDown',
      expr: 'up{job="payroll"} == 0',
      for: '2m',
      severity: 'page',
      summary: 'The service does not respond',
    },
  },
  databaseUnreachable: {
    notice: { level: 'bad', what: 'The database cannot be reached' },
    alert: {
      name: 'PayrollDatabaseUnreachable',
      expr: 'payroll_up{part="database"} == 0',
      for: '1m',
      severity: 'page',
      summary: 'The service cannot reach its database',
    },
  },
  ledgerUnreachable: {
    notice: { level: 'bad', what: 'The ledger cannot be followed' },
    alert: {
      name: 'PayrollLedgerUnreachable',
      expr: 'payroll_up{part="ledger"} == 0',
      for: '2m',
      severity: 'page',
      summary: 'The service cannot reach the Stellar RPC',
    },
  },
  paymentsStopped: {
    notice: { level: 'bad', what: 'Payments are stopped' },
    alert: {
      name: 'PayrollPaymentsStopped',
      expr: 'payroll_payments_stopped > 0',
      for: '10m',
      severity: 'page',
      summary: 'Payments are stopped: the ledger shows payments that the database does not have',
    },
  },
  ledgerBehind: {
    alert: {
      name: 'PayrollLedgerBehind',
      expr: 'payroll_rpc_lag_seconds > 60',
      for: '2m',
      severity: 'page',
      summary: 'The latest ledger of the RPC is {{ $value | humanizeDuration }} old',
    },
  },
  archiveBehind: {
    notice: { level: 'late', what: 'The archive is far behind' },
    alert: {
      name: 'PayrollArchiveBehind',
      expr: `payroll_archive_history_left_ratio < ${MIN_HISTORY_LEFT}`,
      for: '30m',
      severity: 'ticket',
      summary: 'The archive is so far behind that the RPC will drop events before they are stored',
    },
  },
  archiveGap: {
    notice: { level: 'late', what: 'The archive has a gap' },
    alert: {
      name: 'PayrollArchiveGap',
      expr: 'payroll_archive_gaps > 0',
      for: '5m',
      severity: 'ticket',
      summary: 'The archive lacks ledgers that the RPC no longer has',
    },
  },
  transferOverdue: {
    notice: { level: 'late' },
    alert: {
      name: 'PayrollTransferOpen',
      expr: `payroll_oldest_open_seconds{of="transfer"} > ${TRANSFER_OVERDUE_AFTER_SECONDS}`,
      for: '9m',
      severity: 'page',
      summary: 'A transfer has been open for {{ $value | humanizeDuration }}',
    },
  },
  outcomeUnknown: { notice: { level: 'bad' } },
  foundPaid: { notice: { level: 'bad' } },
  sponsorRunsDry: {
    notice: { level: 'bad', what: 'The sponsor’s balance is low' },
    alert: {
      name: 'PayrollSponsorRunsDry',
      expr: `predict_linear(payroll_sponsor_balance_stroops[1d], ${SPONSOR_DAYS} * 86400) < 0`,
      for: '1h',
      severity: 'ticket',
      summary: `The balance of {{ $labels.sponsor }} runs out within ${SPONSOR_DAYS} days`,
    },
  },
  budgetNearlyUsed: {
    notice: { level: 'late', what: 'Today’s budget is nearly used' },
    alert: {
      name: 'PayrollBudgetNearlyUsed',
      expr: `sum(payroll_sponsor_day_stroops) / sum(payroll_sponsor_day_limit_stroops) > ${BUDGET_PERCENT / 100}`,
      for: '1m',
      severity: 'ticket',
      summary: `More than ${BUDGET_PERCENT} % of today's budget for network fees is used`,
    },
  },
  channelProblem: {
    notice: { level: 'late', what: 'cannot pay' },
    alert: {
      name: 'PayrollChannelProblem',
      expr: 'payroll_channels{state="problem"} > 0',
      for: '5m',
      severity: 'ticket',
      summary: '{{ $value }} relay channels cannot pay',
    },
  },
  relayStopped: {
    notice: { level: 'bad', what: 'No relay is running' },
    alert: {
      name: 'PayrollRelayStopped',
      expr: 'sum(payroll_channels) > 0 and sum(payroll_channels{state!="stopped"}) == 0',
      for: '5m',
      severity: 'page',
      summary: 'No relay is running',
    },
  },
  jobStalled: {
    notice: { level: 'late' },
    alert: {
      name: 'PayrollJobStalled',
      expr: `payroll_oldest_open_seconds{of="job"} > ${JOB_STALLED_AFTER_SECONDS}`,
      for: '5m',
      severity: 'page',
      summary: 'A relay job has made no progress for {{ $value | humanizeDuration }}',
    },
  },
  batchStalled: {
    notice: { level: 'late' },
    alert: {
      name: 'PayrollBatchStalled',
      expr: `payroll_oldest_open_seconds{of="batch"} > ${BATCH_STALLED_AFTER_SECONDS}`,
      for: '90m',
      severity: 'ticket',
      summary: 'A batch has made no progress for {{ $value | humanizeDuration }}',
    },
  },
  payoutsFailed: {
    notice: { level: 'bad' },
    alert: {
      name: 'PayrollPayoutsFail',
      expr: 'delta(payroll_payouts{state="failed"}[30m]) > 0',
      for: '1m',
      severity: 'ticket',
      summary: '{{ $value }} payouts failed in the last half hour',
    },
  },
  jobFailed: { notice: { level: 'bad' } },
  sponsorMissing: { notice: { level: 'late', what: 'Every transfer is refused: no fees are paid' } },
  nothingSponsored: { notice: { level: 'late', what: 'Every transfer is refused: no contract is sponsored' } },
  tokenMissing: {
    notice: {
      level: 'late',
      what: 'Every transfer is refused, and no contractor becomes ready: no token is configured',
    },
  },
  errors: {
    alert: {
      name: 'PayrollErrors',
      expr: 'sum(rate(payroll_http_requests_total{status=~"5.."}[5m])) / sum(rate(payroll_http_requests_total[5m])) > 0.05',
      for: '10m',
      severity: 'page',
      summary: '{{ $value | humanizePercentage }} of the requests fail',
    },
  },
  refusals: {
    alert: {
      name: 'PayrollRefusals',
      expr: 'sum(increase(payroll_refusals_total[30m])) > 50',
      for: '1m',
      severity: 'ticket',
      summary: 'The sponsor refuses many transfers',
    },
  },
} as const satisfies Record<string, Condition>

const CONDITION_LIST: readonly Condition[] = Object.values(CONDITIONS)

/** Writes docs/alerts.yml. */
export function alertRules(): string {
  const rules = CONDITION_LIST.flatMap(({ alert }) => {
    if (!alert) return []
    return [
      `      - alert: ${alert.name}`,
      `        expr: ${alert.expr}`,
      `        for: ${alert.for}`,
      `        labels: { severity: ${alert.severity} }`,
      '        annotations:',
      `          summary: ${JSON.stringify(alert.summary)}`,
    ]
  })
  return [
    '# Generated by `npm run docs` from lib/dashboard/conditions.ts.',
    '# Rules for Prometheus over GET /api/metrics, scraped as the job payroll. docs/operate.md, "Alerts", explains each.',
    'groups:',
    '  - name: payroll',
    '    rules:',
    ...rules,
    '',
  ].join('\n')
}
