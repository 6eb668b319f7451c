import { xdr } from '@stellar/stellar-sdk'
import { encodeData } from '../state/entry.ts'
import type { State, StoredEntry } from '../state/state.ts'
import { FEE_RATES, NETWORK_LIMITS } from '../transaction/fees.ts'
import type { LedgerLimits } from '../transaction/ledger-room.ts'

interface NetworkSettings {
  readonly limits: LedgerLimits
  /** milliseconds between ledgers */
  readonly closeMs: number
}

/** Rent is at its floor of 1,000 stroops until the contracts' entries fill this much (testnet's settings). */
const RENT = { target: 4_000_000_000n, low: -17_000n, high: 10_000n }
/** Consensus is instant here, but the setting has testnet's value. */
const TIMEOUT_MS = 1_000

/**
 * The settings of the network as ledger entries (CAP-46-7 and later), with testnet's values where nothing here depends
 * on them. The two tables of cost parameters are missing, because nothing is metered here.
 */
export function configSettings(settings: NetworkSettings): Omit<StoredEntry, 'lastModified'>[] {
  return settingsOf(settings).map((setting) => {
    const name = new xdr.LedgerKeyConfigSetting({ configSettingId: xdr.ConfigSettingId[setting.type] })
    return {
      key: xdr.LedgerKey.configSetting(name).toXdr('base64'),
      data: xdr.LedgerEntryData.configSetting(setting),
    }
  })
}

/** Writes the settings that differ from the ledger's, like a network upgrade. */
export function upgrade(state: State, settings: readonly Omit<StoredEntry, 'lastModified'>[], sequence: number): void {
  for (const setting of settings) {
    const present = state.get(setting.key)
    if (!present || encodeData(present) !== encodeData(setting)) state.put({ ...setting, lastModified: sequence })
  }
}

function settingsOf({ limits, closeMs }: NetworkSettings): xdr.ConfigSettingEntry[] {
  const Entry = xdr.ConfigSettingEntry
  return [
    Entry.configSettingContractMaxSizeBytes(NETWORK_LIMITS.codeBytes),
    Entry.configSettingContractComputeV0(
      new xdr.ConfigSettingContractComputeV0({
        ledgerMaxInstructions: BigInt(limits.soroban.instructions),
        txMaxInstructions: BigInt(NETWORK_LIMITS.instructions),
        feeRatePerInstructionsIncrement: FEE_RATES.per10kInstructions,
        txMemoryLimit: NETWORK_LIMITS.memoryBytes,
      }),
    ),
    Entry.configSettingContractLedgerCostV0(ledgerCost(limits)),
    Entry.configSettingContractHistoricalDataV0(
      new xdr.ConfigSettingContractHistoricalDataV0({ feeHistorical1Kb: FEE_RATES.historical1Kb }),
    ),
    Entry.configSettingContractEventsV0(
      new xdr.ConfigSettingContractEventsV0({
        txMaxContractEventsSizeBytes: NETWORK_LIMITS.eventBytes,
        feeContractEvents1Kb: FEE_RATES.events1Kb,
      }),
    ),
    Entry.configSettingContractBandwidthV0(
      new xdr.ConfigSettingContractBandwidthV0({
        ledgerMaxTxsSizeBytes: limits.soroban.transactionBytes,
        txMaxSizeBytes: NETWORK_LIMITS.transactionBytes,
        feeTxSize1Kb: FEE_RATES.transaction1Kb,
      }),
    ),
    Entry.configSettingContractDataKeySizeBytes(NETWORK_LIMITS.keyBytes),
    Entry.configSettingContractDataEntrySizeBytes(NETWORK_LIMITS.entryBytes),
    Entry.configSettingStateArchival(
      new xdr.StateArchivalSettings({
        maxEntryTtl: NETWORK_LIMITS.maximumTtl,
        minTemporaryTtl: NETWORK_LIMITS.temporaryTtl,
        minPersistentTtl: NETWORK_LIMITS.persistentTtl,
        persistentRentRateDenominator: FEE_RATES.persistentRentDenominator,
        tempRentRateDenominator: FEE_RATES.temporaryRentDenominator,
        maxEntriesToArchive: 1_000,
        liveSorobanStateSizeWindowSampleSize: 30,
        liveSorobanStateSizeWindowSamplePeriod: 64,
        evictionScanSize: 500_000,
        startingEvictionScanLevel: 7,
      }),
    ),
    Entry.configSettingContractExecutionLanes(
      new xdr.ConfigSettingContractExecutionLanesV0({ ledgerMaxTxCount: limits.soroban.operations }),
    ),
    Entry.configSettingLiveSorobanStateSizeWindow(Array.from({ length: 30 }, () => 0n)),
    Entry.configSettingEvictionIterator(
      new xdr.EvictionIterator({ bucketListLevel: 7, isCurrBucket: true, bucketFileOffset: 0n }),
    ),
    Entry.configSettingContractParallelComputeV0(
      new xdr.ConfigSettingContractParallelComputeV0({ ledgerMaxDependentTxClusters: limits.clusters }),
    ),
    Entry.configSettingContractLedgerCostExtV0(
      new xdr.ConfigSettingContractLedgerCostExtV0({
        txMaxFootprintEntries: NETWORK_LIMITS.footprintEntries,
        feeWrite1Kb: FEE_RATES.write1Kb,
      }),
    ),
    Entry.configSettingScpTiming(
      new xdr.ConfigSettingScpTiming({
        ledgerTargetCloseTimeMilliseconds: closeMs,
        nominationTimeoutInitialMilliseconds: TIMEOUT_MS,
        nominationTimeoutIncrementMilliseconds: TIMEOUT_MS,
        ballotTimeoutInitialMilliseconds: TIMEOUT_MS,
        ballotTimeoutIncrementMilliseconds: TIMEOUT_MS,
      }),
    ),
    Entry.configSettingFrozenLedgerKeys(new xdr.FrozenLedgerKeys({ keys: [] })),
    Entry.configSettingFreezeBypassTxs(new xdr.FreezeBypassTxs({ txHashes: [] })),
  ]
}

function ledgerCost({ soroban }: LedgerLimits): xdr.ConfigSettingContractLedgerCostV0 {
  return new xdr.ConfigSettingContractLedgerCostV0({
    ledgerMaxDiskReadEntries: soroban.diskReadEntries,
    ledgerMaxDiskReadBytes: soroban.diskReadBytes,
    ledgerMaxWriteLedgerEntries: soroban.writeEntries,
    ledgerMaxWriteBytes: soroban.writeBytes,
    txMaxDiskReadEntries: NETWORK_LIMITS.diskReadEntries,
    txMaxDiskReadBytes: NETWORK_LIMITS.diskReadBytes,
    txMaxWriteLedgerEntries: NETWORK_LIMITS.writeEntries,
    txMaxWriteBytes: NETWORK_LIMITS.writeBytes,
    feeDiskReadLedgerEntry: FEE_RATES.diskReadEntry,
    feeWriteLedgerEntry: FEE_RATES.writeEntry,
    feeDiskRead1Kb: FEE_RATES.diskRead1Kb,
    sorobanStateTargetSizeBytes: RENT.target,
    rentFee1KbSorobanStateSizeLow: RENT.low,
    rentFee1KbSorobanStateSizeHigh: RENT.high,
    sorobanStateRentFeeGrowthFactor: 5_000,
  })
}
