"""The names that docs/from_tvm.md accounts for: those of TVM 0.14's Python modules and of tvmc's parsers."""

RELAY = """InferType InferTypeLocal FoldScaleAxis BackwardFoldScaleAxis RemoveUnusedFunctions ForwardFoldScaleAxis SimplifyInference FastMath
CanonicalizeOps DeadCodeElimination LazyGradientInit FoldConstantExpr FoldConstant FuseOps DefuseOps CombineParallelConv2D
CombineParallelDense CombineParallelBatchMatmul BatchingOps AlterOpLayout LayoutConfig ConvertLayout Legalize MergeComposite
MergeCompilerRegions ToANormalForm ToANormalFormExpr ToBasicBlockNormalForm ToCPS EtaExpand ToGraphNormalForm EliminateCommonSubexpr
PartialEvaluate CanonicalizeCast LambdaLift PartitionGraph AnnotateTarget DynamicToStatic Inline gradient FirstOrderGradient
Defunctionalization to_cps un_cps ChangeBatch DenseToSparse Conv2dToSparse Conv2dToSparse2 SimplifyFCTranspose SimplifyExpr PlanDevices
ManifestLifetimes FoldExplicitPadding AnnotateSpans FakeQuantizationToInteger FlattenAtrousConv ToMixedPrecision SplitArgs
OutlineCompilerFunctionsWithExistingGlobalSymbols MarkCompilerFunctionsAsExtern CapturePostDfsIndexInSpans
InlineCompilerFunctionsBoundTo CollagePartition DivToMul recast FlexibleShapeDispatch""".split()

TIR = """Apply InjectPrefetch ApplyLayoutTransforms StorageFlatten TextureFlatten InjectCopyIntrin CoProcSync LiftAttrScope LoopPartition
VectorizeLoop InjectVirtualThread InjectDoubleBuffer InjectRollingBuffer StorageRewrite PointerValueTypeRewrite UnrollLoop
ReduceBranchingThroughOvercompute RemoveNoOp RemoveAssume RemoveStoreUndef BF16ComputeLegalize FP8ComputeLegalize BF16StorageLegalize
FP8StorageLegalize CommonSubexprElimTIR RewriteUnsafeSelect Simplify ConvertSSA InstrumentBoundCheckers LowerCustomDatatypes
MakePackedAPI MakeUnpackedAPI AnnotateDeviceRegions SplitHostDevice LowerDeviceKernelLaunch DecorateDeviceScope SkipAssert ThreadSync
LowerThreadAllreduce InferFragment LowerWarpMemory LowerTVMBuiltin LegalizePackedCalls LowerIntrin LowerDeviceStorageAccessInfo
CombineContextCall NarrowDataType VerifyMemory VerifyVTCMLimit HoistIfThenElse HoistExpression LowerCrossThreadReduction LowerInitBlock
PlanAndUpdateBufferAllocationLocation ConvertBlocksToOpaque LiftThreadBinding CompactBufferAllocation LowerMatchBuffer LowerOpaqueBlock
FlattenBuffer TransformMmaBufferLayout InjectPermutedLayout UnifyThreadBinding MergeDynamicSharedMemoryAllocations
ConvertForLoopsToSerial InjectSoftwarePipeline ExtractPrimFuncConstants LowerAutoCopy RenormalizeSplitPattern BindTarget
AnnotateEntryFunc Filter InjectPTXAsyncCopy RemoveWeightLayoutRewriteBlock ManifestSharedMemoryLocalStage InstrumentProfileIntrinsics
InstallDebugSpans""".split()

PRIMITIVES = """split fuse set_scope bind env_threads set_store_predicate compute_at compute_inline compute_root reorder tile vectorize
tensorize unroll parallel pragma prefetch storage_align double_buffer rolling_buffer transform_layout normalize create_group cache_read
cache_write rfactor work_on copy seed fork_seed show get_sref remove_rv sample_categorical sample_perfect_tile sample_partitioned_tile
sample_compute_location get_block get_loops get_child_blocks get_producers get_consumers get_output_blocks merge reorder_block_iter_var
add_unit_loop reindex_cache_read reindex_cache_write cache_inplace cache_index reindex read_at write_at reverse_compute_at
reverse_compute_inline decompose_reduction unsafe_set_dtype blockize annotate unannotate transform_block_layout set_axis_separator
decompose_padding can_decompose_padding pad_einsum enter_postproc unsafe_hide_buffer_access""".split()

TVMC = """compile run tune micro create-project build flash --cross-compiler --cross-compiler-options --dump-code --dump-offloads
--model-format --output --output-format --pass-config --tuning-records --verbose --opt-level --input-shapes --disabled-pass --module-name
--print-pass-times --desired-layout --desired-layout-ops --mixed-precision --mixed-precision-ops --mixed-precision-calculation-type
--mixed-precision-acc-type --workspace-pools --workspace-pools-targets --workspace-pools-size-hint-bytes --executor --runtime --target
--target-host --device --fill-mode --inputs --outputs --print-time --print-top --profile --end-to-end --repeat --number --rpc-key
--rpc-tracker --list-options --project-option --early-stopping --min-repeat-ms --parallel --timeout --trials --enable-autoscheduler --tasks
--cache-line-bytes --num-cores --vector-unit-bytes --max-shared-memory-per-block --max-local-memory-per-block --max-threads-per-block
--max-vthread-extent --warp-size --include-simple-tasks --log-estimated-latency --tuner --force --template-dir --config --version
compute-library cmsis-nn ethos-n ethos-u bnns vitis-ai clml""".split()
